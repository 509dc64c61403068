-- Batches by when they were opened: what began today, and how many of each day of a month ended how. All that
-- is asked stands in the index, because the rows hold the definitions.
CREATE INDEX ix_job_batch_time ON job_batch (create_time, group_code, status);
