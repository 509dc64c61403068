-- Executors of XXL-JOB that this installation is the admin of.

-- executor_group: executors of one appname, the token they share with us, and where they are when they do not say so themselves.
CREATE TABLE executor_group (
    group_id INTEGER PRIMARY KEY AUTOINCREMENT,
    app_name TEXT NOT NULL,
    title TEXT NOT NULL,
    addresses TEXT,
    allows_glue INTEGER NOT NULL,
    token_sealed TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_executor_group_app UNIQUE (app_name)
);

CREATE INDEX ix_executor_group_token ON executor_group (token_hash);

-- executor_registry: where executors said that they are, and when they said so last.
CREATE TABLE executor_registry (
    registry_id INTEGER PRIMARY KEY AUTOINCREMENT,
    app_name TEXT NOT NULL,
    address TEXT NOT NULL,
    shows_app_name INTEGER NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_executor_registry_address UNIQUE (app_name, address)
);

CREATE INDEX ix_executor_registry_time ON executor_registry (update_time);

-- executor_job: the number by which executors know a job, and how often it was sent round.
CREATE TABLE executor_job (
    job_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    rounds INTEGER NOT NULL,
    CONSTRAINT uq_executor_job_code UNIQUE (job_code)
);

-- executor_use: how often and when an address was last given a run of a job; counted anew each day.
CREATE TABLE executor_use (
    use_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id INTEGER NOT NULL,
    address TEXT NOT NULL,
    uses INTEGER NOT NULL,
    since_time TEXT NOT NULL,
    used_time TEXT NOT NULL,
    CONSTRAINT uq_executor_use_address UNIQUE (job_id, address)
);

-- executor_run: what an executor was asked to run for a try of a job, and what became of it.
CREATE TABLE executor_run (
    log_id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    run_no INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    batch_id INTEGER NOT NULL,
    job_code TEXT NOT NULL,
    job_id INTEGER NOT NULL,
    app_name TEXT NOT NULL,
    address TEXT,
    handler TEXT,
    glue_type TEXT NOT NULL,
    params TEXT NOT NULL,
    block_strategy TEXT NOT NULL,
    shard_index INTEGER NOT NULL,
    shard_total INTEGER NOT NULL,
    status TEXT NOT NULL,
    stopping TEXT,
    node_id TEXT,
    trigger_time TEXT,
    trigger_code INTEGER,
    trigger_msg TEXT,
    busy_time TEXT,
    idle_time TEXT,
    handle_code INTEGER,
    handle_msg TEXT,
    result TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    end_time TEXT,
    CONSTRAINT uq_executor_run_try UNIQUE (queue_id, attempt, shard_index)
);

CREATE INDEX ix_executor_run_job ON executor_run (job_id, status);

CREATE INDEX ix_executor_run_node ON executor_run (node_id, status);

CREATE INDEX ix_executor_run_batch ON executor_run (batch_id);

CREATE INDEX ix_executor_run_app ON executor_run (app_name);

CREATE INDEX ix_executor_run_end ON executor_run (end_time);

INSERT INTO job_lock (lock_name) VALUES ('executor_lock');
