-- A job code is unique within its group, and no longer in the whole installation.

-- The idempotency key of a row of an earlier version has no group: what the row did is in the ledger under that key.
-- SQLite cannot drop a constraint, so each table is made anew and its rows are copied with their ids.
CREATE TABLE job_queue_new (
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
    skip_kind TEXT,
    run_mode TEXT,
    priority INTEGER,
    run_no INTEGER NOT NULL DEFAULT 1,
    crash_count INTEGER NOT NULL DEFAULT 0,
    unresolved INTEGER NOT NULL DEFAULT 0,
    waits_on TEXT,
    is_taken INTEGER NOT NULL DEFAULT 1,
    hosted_by TEXT,
    key_has_group INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT uq_job_queue UNIQUE (batch_id, job_code)
);

INSERT INTO job_queue_new (queue_id, batch_id, batch_no, job_code, status, try_count, error_message, create_time,
    update_time, attempt, owner, not_before, start_time, end_time, outputs, skip_kind, run_mode, priority, run_no,
    crash_count, unresolved, waits_on, is_taken, hosted_by)
SELECT queue_id, batch_id, batch_no, job_code, status, try_count, error_message, create_time,
    update_time, attempt, owner, not_before, start_time, end_time, outputs, skip_kind, run_mode, priority, run_no,
    crash_count, unresolved, waits_on, is_taken, hosted_by
FROM job_queue ORDER BY queue_id;

-- Its reference to job_queue would follow the old table, so it is made anew as well.
CREATE TABLE job_execution_logs_new (
    log_id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL REFERENCES job_queue_new (queue_id),
    start_time TEXT,
    end_time TEXT,
    status TEXT NOT NULL,
    error_message TEXT,
    duration_ms INTEGER,
    notify_status TEXT NOT NULL DEFAULT 'UNNOTIFIED',
    retry_count INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    log_time TEXT NOT NULL,
    duration DECIMAL(18, 3) GENERATED ALWAYS AS (duration_ms / 1000.0) VIRTUAL
);

INSERT INTO job_execution_logs_new (log_id, queue_id, start_time, end_time, status, error_message, duration_ms,
    notify_status, retry_count, attempt, owner, log_time)
SELECT log_id, queue_id, start_time, end_time, status, error_message, duration_ms,
    notify_status, retry_count, attempt, owner, log_time
FROM job_execution_logs ORDER BY log_id;

CREATE TABLE job_def_new (
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
    trigger_rule TEXT NOT NULL DEFAULT 'all_success',
    run_mode TEXT,
    CONSTRAINT uq_job_def_code UNIQUE (group_code, job_code)
);

INSERT INTO job_def_new (job_id, job_code, job_name, proc_name, job_type, schedule_time, status, timeout_sec,
    retry_count, notify_email, is_depend, is_active, last_run_time, next_run_time, create_time, update_time,
    group_code, source_name, retry_delay_sec, priority, is_idempotent, owner, tags, body, trigger_rule, run_mode)
SELECT job_id, job_code, job_name, proc_name, job_type, schedule_time, status, timeout_sec,
    retry_count, notify_email, is_depend, is_active, last_run_time, next_run_time, create_time, update_time,
    group_code, source_name, retry_delay_sec, priority, is_idempotent, owner, tags, body, trigger_rule, run_mode
FROM job_def ORDER BY job_id;

-- A dependency of a job that is not defined has no group, and nothing reads it.
CREATE TABLE job_dependency_new (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    dependency_order INTEGER NOT NULL DEFAULT 0,
    edge_condition TEXT,
    group_code TEXT NOT NULL,
    CONSTRAINT uq_job_dependency UNIQUE (group_code, job_code, depends_on)
);

INSERT INTO job_dependency_new (id, job_code, depends_on, dependency_order, edge_condition, group_code)
SELECT e.id, e.job_code, e.depends_on, e.dependency_order, e.edge_condition, d.group_code
FROM job_dependency e JOIN job_def d ON d.job_code = e.job_code ORDER BY e.id;

CREATE TABLE job_external_dependency_new (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    group_code TEXT NOT NULL,
    depends_on TEXT,
    batch_expr TEXT NOT NULL,
    edge_condition TEXT,
    missing TEXT NOT NULL,
    wait_sec INTEGER,
    dependency_order INTEGER NOT NULL DEFAULT 0,
    waiting_group TEXT NOT NULL
);

INSERT INTO job_external_dependency_new (id, job_code, group_code, depends_on, batch_expr, edge_condition, missing,
    wait_sec, dependency_order, waiting_group)
SELECT e.id, e.job_code, e.group_code, e.depends_on, e.batch_expr, e.edge_condition, e.missing,
    e.wait_sec, e.dependency_order, d.group_code
FROM job_external_dependency e JOIN job_def d ON d.job_code = e.job_code ORDER BY e.id;

-- A mark of a job that is not defined any more is of the group whose batch it was found in.
CREATE TABLE tx_breach_new (
    job_code TEXT NOT NULL,
    batch_no TEXT NOT NULL,
    queue_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    said TEXT NOT NULL,
    create_time TEXT NOT NULL,
    group_code TEXT NOT NULL,
    PRIMARY KEY (group_code, job_code)
);

INSERT INTO tx_breach_new (job_code, batch_no, queue_id, attempt, said, create_time, group_code)
SELECT t.job_code, t.batch_no, t.queue_id, t.attempt, t.said, t.create_time,
    COALESCE((SELECT d.group_code FROM job_def d WHERE d.job_code = t.job_code),
    (SELECT b.group_code FROM job_queue q JOIN job_batch b ON b.batch_id = q.batch_id WHERE q.queue_id = t.queue_id), '')
FROM tx_breach t;

-- A number whose job is neither defined nor in a run that is kept stays, so that it is not given again.
CREATE TABLE executor_job_new (
    job_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    rounds INTEGER NOT NULL,
    group_code TEXT NOT NULL,
    CONSTRAINT uq_executor_job_code UNIQUE (group_code, job_code)
);

INSERT INTO executor_job_new (job_id, job_code, rounds, group_code)
SELECT j.job_id, j.job_code, j.rounds,
    COALESCE((SELECT d.group_code FROM job_def d WHERE d.job_code = j.job_code),
    (SELECT MAX(b.group_code) FROM job_batch b WHERE b.batch_id =
    (SELECT MAX(r.batch_id) FROM executor_run r WHERE r.job_id = j.job_id)), '')
FROM executor_job j ORDER BY j.job_id;

-- Each goes on counting where it was, also when its last rows are gone.
DELETE FROM sqlite_sequence WHERE name = 'job_execution_logs_new';

INSERT INTO sqlite_sequence (name, seq) SELECT 'job_execution_logs_new', seq FROM sqlite_sequence WHERE name = 'job_execution_logs';

DELETE FROM sqlite_sequence WHERE name = 'job_queue_new';

INSERT INTO sqlite_sequence (name, seq) SELECT 'job_queue_new', seq FROM sqlite_sequence WHERE name = 'job_queue';

DELETE FROM sqlite_sequence WHERE name = 'job_def_new';

INSERT INTO sqlite_sequence (name, seq) SELECT 'job_def_new', seq FROM sqlite_sequence WHERE name = 'job_def';

DELETE FROM sqlite_sequence WHERE name = 'job_dependency_new';

INSERT INTO sqlite_sequence (name, seq) SELECT 'job_dependency_new', seq FROM sqlite_sequence WHERE name = 'job_dependency';

DELETE FROM sqlite_sequence WHERE name = 'job_external_dependency_new';

INSERT INTO sqlite_sequence (name, seq) SELECT 'job_external_dependency_new', seq FROM sqlite_sequence WHERE name = 'job_external_dependency';

DELETE FROM sqlite_sequence WHERE name = 'executor_job_new';

INSERT INTO sqlite_sequence (name, seq) SELECT 'executor_job_new', seq FROM sqlite_sequence WHERE name = 'executor_job';

DROP TABLE job_execution_logs;

DROP TABLE job_queue;

DROP TABLE job_def;

DROP TABLE job_dependency;

DROP TABLE job_external_dependency;

DROP TABLE tx_breach;

DROP TABLE executor_job;

ALTER TABLE job_queue_new RENAME TO job_queue;

ALTER TABLE job_execution_logs_new RENAME TO job_execution_logs;

ALTER TABLE job_def_new RENAME TO job_def;

ALTER TABLE job_dependency_new RENAME TO job_dependency;

ALTER TABLE job_external_dependency_new RENAME TO job_external_dependency;

ALTER TABLE tx_breach_new RENAME TO tx_breach;

ALTER TABLE executor_job_new RENAME TO executor_job;

CREATE INDEX ix_job_queue_jobs ON job_queue (batch_id, queue_id);

CREATE INDEX ix_job_queue_hosted ON job_queue (hosted_by) WHERE hosted_by IS NOT NULL;

CREATE INDEX ix_job_queue_no ON job_queue (batch_no, job_code);

CREATE INDEX ix_job_execution_logs_queue ON job_execution_logs (queue_id, log_id);

CREATE INDEX ix_job_def_code ON job_def (job_code);

CREATE INDEX ix_job_external_job ON job_external_dependency (waiting_group, job_code);
