-- The columns of the first design say what it meant by them.

-- duration is seconds; the milliseconds stand beside it under their own name. It is generated, so the two never differ,
-- and a process of an earlier version, which wrote milliseconds into it, fails instead of writing a wrong length.
ALTER TABLE job_execution_logs RENAME COLUMN duration TO duration_ms;

ALTER TABLE job_execution_logs ADD COLUMN duration DECIMAL(18, 3) GENERATED ALWAYS AS (duration_ms / 1000.0) VIRTUAL;

-- The change of status that a mail reports: notify_status of that row is NOTIFIED once the mail has gone.
ALTER TABLE email_notifications ADD COLUMN log_id INTEGER;

CREATE INDEX ix_email_digest ON email_notifications (digest_id) WHERE digest_id IS NOT NULL;

-- job_def.next_run_time is worked out from the schedules of a group.
CREATE INDEX ix_job_trigger_group ON job_trigger (group_code);

-- try_count and retry_count are retries: an attempt that was the last adds none. What the last attempt began with is in
-- its own RUNNING row.
UPDATE job_queue SET try_count = COALESCE((SELECT MIN(l.retry_count) FROM job_execution_logs l
    WHERE l.queue_id = job_queue.queue_id AND l.attempt = job_queue.attempt AND l.status = 'RUNNING'), try_count)
WHERE try_count > 0 AND status NOT IN ('PENDING', 'HELD', 'QUEUED', 'RUNNING', 'KILLING', 'RETRY_WAIT');

UPDATE job_execution_logs SET retry_count = COALESCE((SELECT MIN(r.retry_count) FROM job_execution_logs r
    WHERE r.queue_id = job_execution_logs.queue_id AND r.attempt = job_execution_logs.attempt
    AND r.status = 'RUNNING'), retry_count)
WHERE retry_count > 0
AND status NOT IN ('PENDING', 'HELD', 'QUEUED', 'RUNNING', 'KILLING', 'RETRY_WAIT');

-- A change was marked when its mail was written. It stays so only where a mail about that job has gone.
UPDATE job_execution_logs SET notify_status = 'UNNOTIFIED'
WHERE notify_status = 'NOTIFIED' AND NOT EXISTS (SELECT 1 FROM email_notifications m
    WHERE m.created_at = job_execution_logs.log_time AND m.queue_id = job_execution_logs.queue_id
    AND m.status IN ('sent', 'digest'));
