-- The tables of the first version. Portability rules: migrations/README.md.

-- procession_meta: facts about this installation, by name.
CREATE TABLE procession_meta (
    name VARCHAR(64) NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- data_source: named databases on which bodies run; never holds a password.
CREATE TABLE data_source (
    source_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    source_name VARCHAR(64) NOT NULL,
    url TEXT NOT NULL,
    password_env VARCHAR(255),
    password_file TEXT,
    max_parallel INT,
    procedures LONGTEXT,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_data_source_name UNIQUE (source_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- job_group: a pipeline.
CREATE TABLE job_group (
    group_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    group_code VARCHAR(64) NOT NULL,
    group_name VARCHAR(255) NOT NULL,
    batch_type VARCHAR(64),
    owner VARCHAR(255),
    notify_email TEXT,
    max_parallel INT,
    time_zone VARCHAR(64),
    params LONGTEXT,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_job_group_code UNIQUE (group_code)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- job_def: what may run.
CREATE TABLE job_def (
    job_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_code VARCHAR(100) NOT NULL,
    job_name VARCHAR(255) NOT NULL,
    proc_name VARCHAR(255),
    job_type VARCHAR(20) NOT NULL,
    schedule_time VARCHAR(8),
    status VARCHAR(20),
    timeout_sec INT NOT NULL DEFAULT 1800,
    retry_count INT NOT NULL DEFAULT 0,
    notify_email TEXT,
    is_depend TINYINT NOT NULL DEFAULT 0,
    is_active TINYINT NOT NULL DEFAULT 1,
    last_run_time DATETIME(3),
    next_run_time DATETIME(3),
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    group_code VARCHAR(64) NOT NULL,
    source_name VARCHAR(64),
    retry_delay_sec INT NOT NULL DEFAULT 0,
    priority INT NOT NULL DEFAULT 0,
    is_idempotent TINYINT NOT NULL DEFAULT 0,
    owner VARCHAR(255),
    tags TEXT,
    body LONGTEXT NOT NULL,
    CONSTRAINT uq_job_def_code UNIQUE (job_code)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_def_group ON job_def (group_code);

-- job_dependency: what runs after what.
CREATE TABLE job_dependency (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_code VARCHAR(100) NOT NULL,
    depends_on VARCHAR(100) NOT NULL,
    dependency_order INT NOT NULL DEFAULT 0,
    CONSTRAINT uq_job_dependency UNIQUE (job_code, depends_on)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_dependency_on ON job_dependency (depends_on);

-- cluster_node: one row per life of a process; its lease is the lease of everything it owns.
CREATE TABLE cluster_node (
    node_id VARCHAR(64) NOT NULL PRIMARY KEY,
    host VARCHAR(255) NOT NULL,
    pid BIGINT NOT NULL,
    version VARCHAR(64) NOT NULL,
    started_at DATETIME(3) NOT NULL,
    heartbeat_at DATETIME(3) NOT NULL,
    lease_until DATETIME(3) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- job_batch: one run of a group for one batch number.
CREATE TABLE job_batch (
    batch_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    batch_no VARCHAR(64) NOT NULL,
    group_code VARCHAR(64) NOT NULL,
    batch_type VARCHAR(64),
    status VARCHAR(20) NOT NULL,
    business_date VARCHAR(10),
    params LONGTEXT NOT NULL,
    snapshot LONGTEXT NOT NULL,
    owner VARCHAR(64),
    started_by VARCHAR(255) NOT NULL,
    reason TEXT,
    create_time DATETIME(3) NOT NULL,
    end_time DATETIME(3),
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_job_batch UNIQUE (batch_no, group_code)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_batch_status ON job_batch (status, owner);

-- job_queue: one job in one batch.
CREATE TABLE job_queue (
    queue_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    batch_id BIGINT NOT NULL,
    batch_no VARCHAR(64) NOT NULL,
    job_code VARCHAR(100) NOT NULL,
    status VARCHAR(20) NOT NULL,
    try_count INT NOT NULL DEFAULT 0,
    error_message TEXT,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    attempt INT NOT NULL DEFAULT 0,
    owner VARCHAR(64),
    not_before DATETIME(3),
    start_time DATETIME(3),
    end_time DATETIME(3),
    outputs LONGTEXT,
    CONSTRAINT uq_job_queue UNIQUE (batch_no, job_code),
    FOREIGN KEY (batch_id) REFERENCES job_batch (batch_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_queue_batch ON job_queue (batch_id, status);

CREATE INDEX ix_job_queue_ready ON job_queue (status, not_before);

-- job_execution_logs: one row per change of status.
CREATE TABLE job_execution_logs (
    log_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    queue_id BIGINT NOT NULL,
    start_time DATETIME(3),
    end_time DATETIME(3),
    status VARCHAR(20) NOT NULL,
    error_message TEXT,
    duration BIGINT,
    notify_status VARCHAR(20) NOT NULL DEFAULT 'UNNOTIFIED',
    retry_count INT NOT NULL DEFAULT 0,
    attempt INT NOT NULL DEFAULT 0,
    owner VARCHAR(64),
    log_time DATETIME(3) NOT NULL,
    FOREIGN KEY (queue_id) REFERENCES job_queue (queue_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_execution_logs_queue ON job_execution_logs (queue_id, log_id);

-- job_log_line: what a body printed or a database said, line by line.
CREATE TABLE job_log_line (
    queue_id BIGINT NOT NULL,
    attempt INT NOT NULL,
    line_no BIGINT NOT NULL,
    stream VARCHAR(10) NOT NULL,
    line_text TEXT NOT NULL,
    log_time DATETIME(3) NOT NULL,
    PRIMARY KEY (queue_id, attempt, line_no)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- email_notifications: the outbox of mails.
CREATE TABLE email_notifications (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    recipient_email VARCHAR(255) NOT NULL,
    subject VARCHAR(255) NOT NULL,
    body TEXT NOT NULL,
    status VARCHAR(10) NOT NULL DEFAULT 'pending',
    send_time DATETIME(3),
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    fail_reason TEXT,
    type VARCHAR(20) NOT NULL,
    retry_count INT NOT NULL DEFAULT 0,
    is_system TINYINT NOT NULL DEFAULT 0,
    queue_id BIGINT,
    batch_id BIGINT
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_email_recipient ON email_notifications (recipient_email);

CREATE INDEX ix_email_status ON email_notifications (status);

CREATE INDEX ix_email_send_time ON email_notifications (send_time);
