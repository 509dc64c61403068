-- Old rows go in small steps.

-- Since when the rows of a batch are being removed: it is no batch any more, only its rows are not gone yet.
ALTER TABLE job_batch ADD COLUMN remove_time TEXT;

-- When the lines that its jobs printed were removed.
ALTER TABLE job_batch ADD COLUMN lines_time TEXT;

CREATE INDEX ix_job_batch_remove ON job_batch (remove_time);

CREATE INDEX ix_job_batch_newest ON job_batch (group_code, batch_id);

CREATE INDEX ix_email_batch ON email_notifications (batch_id, status);

CREATE INDEX ix_procession_ledger_batch ON procession_ledger (batch_no);

INSERT INTO job_lock (lock_name) VALUES ('retention_lock');
