-- What is known of a try after a crash.

ALTER TABLE job_queue ADD COLUMN run_no INTEGER NOT NULL DEFAULT 1;

ALTER TABLE job_queue ADD COLUMN crash_count INTEGER NOT NULL DEFAULT 0;

ALTER TABLE job_queue ADD COLUMN unresolved INTEGER NOT NULL DEFAULT 0;

ALTER TABLE job_queue ADD COLUMN waits_on TEXT;

-- procession_ledger: which bodies of class `same` took effect; each data source has one for class `ledger`.
CREATE TABLE procession_ledger (
    idem_key VARCHAR(255) NOT NULL PRIMARY KEY,
    state VARCHAR(10) NOT NULL,
    batch_no VARCHAR(64) NOT NULL,
    job_code VARCHAR(100) NOT NULL,
    attempt INTEGER NOT NULL,
    outputs TEXT,
    opened_at TIMESTAMPTZ(3) NOT NULL,
    done_at TIMESTAMPTZ(3)
);

-- tx_breach: jobs that committed by themselves although they are declared `same` or `ledger`.
CREATE TABLE tx_breach (
    job_code VARCHAR(100) NOT NULL PRIMARY KEY,
    batch_no VARCHAR(64) NOT NULL,
    queue_id BIGINT NOT NULL,
    attempt INTEGER NOT NULL,
    said TEXT NOT NULL,
    create_time TIMESTAMPTZ(3) NOT NULL
);
