-- Runs that an XXL-JOB admin asks for, with this installation as its executor.

-- xxl_run: what an XXL-JOB admin has asked for, which batches it came to, and whether the admin knows how it ended.
CREATE TABLE xxl_run (
    run_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    app_name VARCHAR(64) NOT NULL,
    log_id BIGINT NOT NULL,
    log_date_time BIGINT NOT NULL,
    job_id BIGINT NOT NULL,
    handler VARCHAR(100) NOT NULL,
    params TEXT NOT NULL,
    admin VARCHAR(1000) NOT NULL,
    block_strategy VARCHAR(20) NOT NULL,
    timeout_sec BIGINT,
    shard_index BIGINT NOT NULL,
    shard_total BIGINT NOT NULL,
    status VARCHAR(20) NOT NULL,
    stopping VARCHAR(20),
    batch_ids TEXT,
    deadline DATETIME(3),
    handle_code BIGINT,
    handle_msg TEXT,
    callback VARCHAR(20) NOT NULL,
    callback_at DATETIME(3),
    callback_tries BIGINT NOT NULL,
    callback_error TEXT,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    end_time DATETIME(3),
    CONSTRAINT uq_xxl_run_log UNIQUE (app_name, log_id, log_date_time)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_xxl_run_job ON xxl_run (app_name, status, job_id);

CREATE INDEX ix_xxl_run_callback ON xxl_run (app_name, callback, callback_at);

INSERT INTO job_lock (lock_name) VALUES ('xxl_run_lock');
