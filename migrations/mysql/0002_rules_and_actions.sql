-- What definitions, batches and operators may say beyond the first version.

ALTER TABLE job_group ADD COLUMN options LONGTEXT;

ALTER TABLE job_def ADD COLUMN trigger_rule VARCHAR(20) NOT NULL DEFAULT 'all_success';

ALTER TABLE job_def ADD COLUMN run_mode VARCHAR(10);

ALTER TABLE job_dependency ADD COLUMN edge_condition TEXT;

ALTER TABLE job_queue ADD COLUMN skip_kind VARCHAR(10);

ALTER TABLE job_queue ADD COLUMN run_mode VARCHAR(10);

ALTER TABLE job_queue ADD COLUMN priority INT;

ALTER TABLE job_batch ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;

ALTER TABLE job_batch ADD COLUMN is_paused TINYINT NOT NULL DEFAULT 0;

ALTER TABLE job_batch ADD COLUMN parent_queue_id BIGINT;

ALTER TABLE job_batch ADD COLUMN backfill_id BIGINT;

ALTER TABLE job_batch ADD COLUMN deadline DATETIME(3);

-- job_external_dependency: what runs after jobs or batches of other numbers and groups.
CREATE TABLE job_external_dependency (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_code VARCHAR(100) NOT NULL,
    group_code VARCHAR(64) NOT NULL,
    depends_on VARCHAR(100),
    batch_expr VARCHAR(100) NOT NULL,
    edge_condition TEXT,
    missing VARCHAR(10) NOT NULL,
    wait_sec INT,
    dependency_order INT NOT NULL DEFAULT 0
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_external_job ON job_external_dependency (job_code);

-- resource_pool: slots that jobs of any group share.
CREATE TABLE resource_pool (
    pool_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    pool_name VARCHAR(100) NOT NULL,
    slots INT NOT NULL,
    body LONGTEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_resource_pool UNIQUE (pool_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- job_owner: who answers for jobs and groups.
CREATE TABLE job_owner (
    owner_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    owner_name VARCHAR(100) NOT NULL,
    body LONGTEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_job_owner UNIQUE (owner_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- http_host: hosts that HTTP jobs may call.
CREATE TABLE http_host (
    host_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    host_name VARCHAR(100) NOT NULL,
    body LONGTEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_http_host UNIQUE (host_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- secret_source: where secrets come from; never holds one in the clear.
CREATE TABLE secret_source (
    secret_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    secret_name VARCHAR(100) NOT NULL,
    body LONGTEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_secret_source UNIQUE (secret_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- global_param: parameters of every batch of every group.
CREATE TABLE global_param (
    param_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    param_name VARCHAR(100) NOT NULL,
    body LONGTEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_global_param UNIQUE (param_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- sealed_secret: secrets sealed under the installation's key.
CREATE TABLE sealed_secret (
    secret_name VARCHAR(100) NOT NULL PRIMARY KEY,
    sealed LONGTEXT NOT NULL,
    sealed_by VARCHAR(255) NOT NULL,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- definition_version: what was defined, each time it changed.
CREATE TABLE definition_version (
    version_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    group_code VARCHAR(64) NOT NULL,
    version_no INT NOT NULL,
    author VARCHAR(255) NOT NULL,
    remark TEXT,
    definition LONGTEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_definition_version UNIQUE (group_code, version_no)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- audit_log: who did what, when and why; only ever added to.
CREATE TABLE audit_log (
    audit_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    actor VARCHAR(255) NOT NULL,
    host VARCHAR(255) NOT NULL,
    action VARCHAR(40) NOT NULL,
    group_code VARCHAR(64),
    batch_id BIGINT,
    batch_no VARCHAR(64),
    job_code VARCHAR(100),
    detail LONGTEXT,
    reason TEXT,
    create_time DATETIME(3) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_audit_log_batch ON audit_log (batch_id, audit_id);

CREATE INDEX ix_audit_log_time ON audit_log (create_time);

-- backfill: runs of a range of batches.
CREATE TABLE backfill (
    backfill_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    group_code VARCHAR(64) NOT NULL,
    range_text TEXT NOT NULL,
    status VARCHAR(20) NOT NULL,
    options LONGTEXT NOT NULL,
    owner VARCHAR(64),
    started_by VARCHAR(255) NOT NULL,
    reason TEXT,
    create_time DATETIME(3) NOT NULL,
    end_time DATETIME(3),
    update_time DATETIME(3) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- backfill_batch: the batches of a backfill, in their order.
CREATE TABLE backfill_batch (
    backfill_id BIGINT NOT NULL,
    place INT NOT NULL,
    batch_no VARCHAR(64) NOT NULL,
    status VARCHAR(20) NOT NULL,
    message TEXT,
    update_time DATETIME(3) NOT NULL,
    PRIMARY KEY (backfill_id, place),
    CONSTRAINT uq_backfill_batch UNIQUE (backfill_id, batch_no)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_batch_group ON job_batch (group_code, batch_no);
