-- job_approval: what APPROVAL jobs ask of people, and who decided it.
CREATE TABLE job_approval (
    approval_id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    run_no INTEGER NOT NULL,
    try_no INTEGER NOT NULL,
    batch_id INTEGER NOT NULL,
    batch_no TEXT NOT NULL,
    group_code TEXT NOT NULL,
    job_code TEXT NOT NULL,
    status TEXT NOT NULL,
    rule_json TEXT NOT NULL,
    create_time TEXT NOT NULL,
    deadline TEXT NOT NULL,
    decided_by TEXT,
    decided_from TEXT,
    decision_comment TEXT,
    end_time TEXT,
    CONSTRAINT uq_job_approval UNIQUE (queue_id, run_no, try_no)
);

CREATE INDEX ix_job_approval_status ON job_approval (status, group_code);

CREATE INDEX ix_job_approval_batch ON job_approval (batch_id);
