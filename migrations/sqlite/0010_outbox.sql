-- Mails go out: what a row says in full, when it is due, who is sending it.

-- In which language; the installation's where it is null.
ALTER TABLE email_notifications ADD COLUMN lang TEXT;

-- What it says, before it is drawn for its recipient; JSON.
ALTER TABLE email_notifications ADD COLUMN letter TEXT;

-- What may be told only once, however often it is found.
ALTER TABLE email_notifications ADD COLUMN event_key TEXT;

-- now; batch and day wait for a digest.
ALTER TABLE email_notifications ADD COLUMN told TEXT NOT NULL DEFAULT 'now';

-- When it is sent, or tried again; null where it waits for a digest or is done with.
ALTER TABLE email_notifications ADD COLUMN next_at TEXT;

-- The process that sends it, until next_at.
ALTER TABLE email_notifications ADD COLUMN claimed_by TEXT;

-- The digest that it went out with.
ALTER TABLE email_notifications ADD COLUMN digest_id INTEGER;

ALTER TABLE email_notifications ADD COLUMN group_code TEXT;

ALTER TABLE email_notifications ADD COLUMN job_code TEXT;

CREATE INDEX ix_email_due ON email_notifications (status, next_at);

CREATE UNIQUE INDEX ux_email_event ON email_notifications (event_key, recipient_email);

-- Whoever begins to send mails does not want those of a year ago.
UPDATE email_notifications SET status = 'failed',
    fail_reason = 'written before this version could send; procession outbox resend sends it'
    WHERE status = 'pending';

-- What nobody wants to hear of for a while.
CREATE TABLE notify_snooze (
    snooze_id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_code TEXT NOT NULL,
    job_code TEXT,
    type TEXT,
    until_time TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    create_time TEXT NOT NULL
);

CREATE INDEX ix_notify_snooze_until ON notify_snooze (until_time);
