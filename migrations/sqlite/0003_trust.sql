-- What is known of a try after a crash.

ALTER TABLE job_queue ADD COLUMN run_no INTEGER NOT NULL DEFAULT 1;

ALTER TABLE job_queue ADD COLUMN crash_count INTEGER NOT NULL DEFAULT 0;

ALTER TABLE job_queue ADD COLUMN unresolved INTEGER NOT NULL DEFAULT 0;

ALTER TABLE job_queue ADD COLUMN waits_on TEXT;

-- procession_ledger: which bodies of class `same` took effect; each data source has one for class `ledger`.
CREATE TABLE procession_ledger (
    idem_key TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    batch_no TEXT NOT NULL,
    job_code TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    outputs TEXT,
    opened_at TEXT NOT NULL,
    done_at TEXT
);

-- tx_breach: jobs that committed by themselves although they are declared `same` or `ledger`.
CREATE TABLE tx_breach (
    job_code TEXT NOT NULL PRIMARY KEY,
    batch_no TEXT NOT NULL,
    queue_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    said TEXT NOT NULL,
    create_time TEXT NOT NULL
);
