-- The tables of the first version. Portability rules: migrations/README.md.

-- procession_meta: facts about this installation, by name.
CREATE TABLE procession_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- data_source: named databases on which bodies run; never holds a password.
CREATE TABLE data_source (
    source_id INTEGER PRIMARY KEY AUTOINCREMENT,
    source_name TEXT NOT NULL,
    url TEXT NOT NULL,
    password_env TEXT,
    password_file TEXT,
    max_parallel INTEGER,
    procedures TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_data_source_name UNIQUE (source_name)
);

-- job_group: a pipeline.
CREATE TABLE job_group (
    group_id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_code TEXT NOT NULL,
    group_name TEXT NOT NULL,
    batch_type TEXT,
    owner TEXT,
    notify_email TEXT,
    max_parallel INTEGER,
    time_zone TEXT,
    params TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_job_group_code UNIQUE (group_code)
);

-- job_def: what may run.
CREATE TABLE job_def (
    job_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    job_name TEXT NOT NULL,
    proc_name TEXT,
    job_type TEXT NOT NULL,
    schedule_time TEXT,
    status TEXT,
    timeout_sec INTEGER NOT NULL DEFAULT 1800,
    retry_count INTEGER NOT NULL DEFAULT 0,
    notify_email TEXT,
    is_depend INTEGER NOT NULL DEFAULT 0,
    is_active INTEGER NOT NULL DEFAULT 1,
    last_run_time TEXT,
    next_run_time TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    group_code TEXT NOT NULL,
    source_name TEXT,
    retry_delay_sec INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL DEFAULT 0,
    is_idempotent INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    tags TEXT,
    body TEXT NOT NULL,
    CONSTRAINT uq_job_def_code UNIQUE (job_code)
);

CREATE INDEX ix_job_def_group ON job_def (group_code);

-- job_dependency: what runs after what.
CREATE TABLE job_dependency (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    dependency_order INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT uq_job_dependency UNIQUE (job_code, depends_on)
);

CREATE INDEX ix_job_dependency_on ON job_dependency (depends_on);

-- cluster_node: one row per life of a process; its lease is the lease of everything it owns.
CREATE TABLE cluster_node (
    node_id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    started_at TEXT NOT NULL,
    heartbeat_at TEXT NOT NULL,
    lease_until TEXT NOT NULL
);

-- job_batch: one run of a group for one batch number.
CREATE TABLE job_batch (
    batch_id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_no TEXT NOT NULL,
    group_code TEXT NOT NULL,
    batch_type TEXT,
    status TEXT NOT NULL,
    business_date TEXT,
    params TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    owner TEXT,
    started_by TEXT NOT NULL,
    reason TEXT,
    create_time TEXT NOT NULL,
    end_time TEXT,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_job_batch UNIQUE (batch_no, group_code)
);

CREATE INDEX ix_job_batch_status ON job_batch (status, owner);

-- job_queue: one job in one batch.
CREATE TABLE job_queue (
    queue_id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_id INTEGER NOT NULL REFERENCES job_batch (batch_id),
    batch_no TEXT NOT NULL,
    job_code TEXT NOT NULL,
    status TEXT NOT NULL,
    try_count INTEGER NOT NULL DEFAULT 0,
    error_message TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    not_before TEXT,
    start_time TEXT,
    end_time TEXT,
    outputs TEXT,
    CONSTRAINT uq_job_queue UNIQUE (batch_no, job_code)
);

CREATE INDEX ix_job_queue_batch ON job_queue (batch_id, status);

CREATE INDEX ix_job_queue_ready ON job_queue (status, not_before);

-- job_execution_logs: one row per change of status.
CREATE TABLE job_execution_logs (
    log_id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL REFERENCES job_queue (queue_id),
    start_time TEXT,
    end_time TEXT,
    status TEXT NOT NULL,
    error_message TEXT,
    duration INTEGER,
    notify_status TEXT NOT NULL DEFAULT 'UNNOTIFIED',
    retry_count INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    log_time TEXT NOT NULL
);

CREATE INDEX ix_job_execution_logs_queue ON job_execution_logs (queue_id, log_id);

-- job_log_line: what a body printed or a database said, line by line.
CREATE TABLE job_log_line (
    queue_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    line_no INTEGER NOT NULL,
    stream TEXT NOT NULL,
    line_text TEXT NOT NULL,
    log_time TEXT NOT NULL,
    PRIMARY KEY (queue_id, attempt, line_no)
);

-- email_notifications: the outbox of mails.
CREATE TABLE email_notifications (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    recipient_email TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    send_time TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    fail_reason TEXT,
    type TEXT NOT NULL,
    retry_count INTEGER NOT NULL DEFAULT 0,
    is_system INTEGER NOT NULL DEFAULT 0,
    queue_id INTEGER,
    batch_id INTEGER
);

CREATE INDEX ix_email_recipient ON email_notifications (recipient_email);

CREATE INDEX ix_email_status ON email_notifications (status);

CREATE INDEX ix_email_send_time ON email_notifications (send_time);
