-- No index holds what changes whenever a job begins or ends. A node looks by an index for the jobs that it runs and
-- another dispatches; these alone name their node in a column that is there for it.
ALTER TABLE job_queue ADD COLUMN hosted_by VARCHAR(64);

-- Room for the next versions of a page's rows: one that stays on its page needs no new entry in any index.
ALTER TABLE job_queue SET (fillfactor = 60);

CREATE INDEX ix_job_queue_hosted ON job_queue (hosted_by) WHERE hosted_by IS NOT NULL;

UPDATE job_queue SET hosted_by = owner
WHERE status IN ('RUNNING', 'KILLING') AND NOT EXISTS
    (SELECT 1 FROM job_batch b WHERE b.batch_id = job_queue.batch_id AND b.owner = job_queue.owner);

DROP INDEX ix_job_queue_owner;
