-- Runs that an XXL-JOB admin asks for, with this installation as its executor.

-- xxl_run: what an XXL-JOB admin has asked for, which batches it came to, and whether the admin knows how it ended.
CREATE TABLE xxl_run (
    run_id INTEGER PRIMARY KEY AUTOINCREMENT,
    app_name TEXT NOT NULL,
    log_id INTEGER NOT NULL,
    log_date_time INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    handler TEXT NOT NULL,
    params TEXT NOT NULL,
    admin TEXT NOT NULL,
    block_strategy TEXT NOT NULL,
    timeout_sec INTEGER,
    shard_index INTEGER NOT NULL,
    shard_total INTEGER NOT NULL,
    status TEXT NOT NULL,
    stopping TEXT,
    batch_ids TEXT,
    deadline TEXT,
    handle_code INTEGER,
    handle_msg TEXT,
    callback TEXT NOT NULL,
    callback_at TEXT,
    callback_tries INTEGER NOT NULL,
    callback_error TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    end_time TEXT,
    CONSTRAINT uq_xxl_run_log UNIQUE (app_name, log_id, log_date_time)
);

CREATE INDEX ix_xxl_run_job ON xxl_run (app_name, status, job_id);

CREATE INDEX ix_xxl_run_callback ON xxl_run (app_name, callback, callback_at);

INSERT INTO job_lock (lock_name) VALUES ('xxl_run_lock');
