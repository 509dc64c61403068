-- The application on a cluster that an attempt of the row submitted last: the key of the attempt, a blank, the id that the
-- cluster gave it. Null: none was.
ALTER TABLE job_queue ADD COLUMN application TEXT;
