-- Mails go out: what a row says in full, when it is due, who is sending it.

-- In which language; the installation's where it is null.
ALTER TABLE email_notifications ADD COLUMN lang VARCHAR(2);

-- What it says, before it is drawn for its recipient; JSON.
ALTER TABLE email_notifications ADD COLUMN letter LONGTEXT;

-- What may be told only once, however often it is found.
ALTER TABLE email_notifications ADD COLUMN event_key VARCHAR(120);

-- now; batch and day wait for a digest.
ALTER TABLE email_notifications ADD COLUMN told VARCHAR(10) NOT NULL DEFAULT 'now';

-- When it is sent, or tried again; null where it waits for a digest or is done with.
ALTER TABLE email_notifications ADD COLUMN next_at DATETIME(3);

-- The process that sends it, until next_at.
ALTER TABLE email_notifications ADD COLUMN claimed_by VARCHAR(64);

-- The digest that it went out with.
ALTER TABLE email_notifications ADD COLUMN digest_id BIGINT;

ALTER TABLE email_notifications ADD COLUMN group_code VARCHAR(64);

ALTER TABLE email_notifications ADD COLUMN job_code VARCHAR(100);

CREATE INDEX ix_email_due ON email_notifications (status, next_at);

CREATE UNIQUE INDEX ux_email_event ON email_notifications (event_key, recipient_email);

-- Whoever begins to send mails does not want those of a year ago.
UPDATE email_notifications SET status = 'failed',
    fail_reason = 'written before this version could send; procession outbox resend sends it'
    WHERE status = 'pending';

-- What nobody wants to hear of for a while.
CREATE TABLE notify_snooze (
    snooze_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    group_code VARCHAR(64) NOT NULL,
    job_code VARCHAR(100),
    type VARCHAR(20),
    until_time DATETIME(3) NOT NULL,
    actor VARCHAR(255) NOT NULL,
    reason VARCHAR(1000) NOT NULL,
    create_time DATETIME(3) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_notify_snooze_until ON notify_snooze (until_time);
