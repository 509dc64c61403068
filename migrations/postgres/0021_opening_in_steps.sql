-- A batch of many jobs gets its queue rows in several transactions; how many are still to be written.
ALTER TABLE job_batch ADD COLUMN unwritten_jobs INTEGER NOT NULL DEFAULT 0;
