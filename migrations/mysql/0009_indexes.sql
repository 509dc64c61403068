-- Fewer indexes to keep at each hop, and the rows of a batch in their order.

-- Its rows are read in pages, in order. It takes the place of (batch_id, status), which changed with each state.
CREATE INDEX ix_job_queue_jobs ON job_queue (batch_id, queue_id);

DROP INDEX ix_job_queue_batch ON job_queue;

-- What is ready is known in memory; no statement ever asked for it.
DROP INDEX ix_job_queue_ready ON job_queue;

-- Nobody asks who waits for a job: definitions are read whole.
DROP INDEX ix_job_dependency_on ON job_dependency;
