-- Executors of XXL-JOB that this installation is the admin of.

-- executor_group: executors of one appname, the token they share with us, and where they are when they do not say so themselves.
CREATE TABLE executor_group (
    group_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    app_name VARCHAR(64) NOT NULL,
    title VARCHAR(200) NOT NULL,
    addresses TEXT,
    allows_glue TINYINT NOT NULL,
    token_sealed TEXT NOT NULL,
    token_hash VARCHAR(64) NOT NULL,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_executor_group_app UNIQUE (app_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_executor_group_token ON executor_group (token_hash);

-- executor_registry: where executors said that they are, and when they said so last.
CREATE TABLE executor_registry (
    registry_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    app_name VARCHAR(64) NOT NULL,
    address VARCHAR(255) NOT NULL,
    shows_app_name TINYINT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_executor_registry_address UNIQUE (app_name, address)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_executor_registry_time ON executor_registry (update_time);

-- executor_job: the number by which executors know a job, and how often it was sent round.
CREATE TABLE executor_job (
    job_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_code VARCHAR(100) NOT NULL,
    rounds BIGINT NOT NULL,
    CONSTRAINT uq_executor_job_code UNIQUE (job_code)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- executor_use: how often and when an address was last given a run of a job; counted anew each day.
CREATE TABLE executor_use (
    use_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_id BIGINT NOT NULL,
    address VARCHAR(255) NOT NULL,
    uses BIGINT NOT NULL,
    since_time DATETIME(3) NOT NULL,
    used_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_executor_use_address UNIQUE (job_id, address)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- executor_run: what an executor was asked to run for a try of a job, and what became of it.
CREATE TABLE executor_run (
    log_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    queue_id BIGINT NOT NULL,
    run_no BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    batch_id BIGINT NOT NULL,
    job_code VARCHAR(100) NOT NULL,
    job_id BIGINT NOT NULL,
    app_name VARCHAR(64) NOT NULL,
    address VARCHAR(255),
    handler VARCHAR(255),
    glue_type VARCHAR(50) NOT NULL,
    params TEXT NOT NULL,
    block_strategy VARCHAR(20) NOT NULL,
    shard_index BIGINT NOT NULL,
    shard_total BIGINT NOT NULL,
    status VARCHAR(20) NOT NULL,
    stopping VARCHAR(20),
    node_id VARCHAR(64),
    trigger_time DATETIME(3),
    trigger_code BIGINT,
    trigger_msg TEXT,
    busy_time DATETIME(3),
    idle_time DATETIME(3),
    handle_code BIGINT,
    handle_msg TEXT,
    result VARCHAR(20),
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    end_time DATETIME(3),
    CONSTRAINT uq_executor_run_try UNIQUE (queue_id, attempt, shard_index)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_executor_run_job ON executor_run (job_id, status);

CREATE INDEX ix_executor_run_node ON executor_run (node_id, status);

CREATE INDEX ix_executor_run_batch ON executor_run (batch_id);

CREATE INDEX ix_executor_run_app ON executor_run (app_name);

CREATE INDEX ix_executor_run_end ON executor_run (end_time);

INSERT INTO job_lock (lock_name) VALUES ('executor_lock');
