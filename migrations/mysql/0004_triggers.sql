-- Schedules: when something fires, and what became of each planned time.

-- job_trigger: a schedule: when which order is handed to which handler; `body` holds all of it as JSON.
CREATE TABLE job_trigger (
    trigger_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    trigger_code VARCHAR(100) NOT NULL,
    trigger_name VARCHAR(255) NOT NULL,
    group_code VARCHAR(50),
    schedule_type VARCHAR(20) NOT NULL,
    schedule_conf VARCHAR(255) NOT NULL,
    time_zone VARCHAR(50) NOT NULL,
    handler VARCHAR(50) NOT NULL,
    trigger_status VARCHAR(10) NOT NULL,
    reason LONGTEXT,
    origin VARCHAR(20) NOT NULL,
    revision BIGINT NOT NULL DEFAULT 1,
    body LONGTEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_job_trigger_code UNIQUE (trigger_code)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_trigger_type ON job_trigger (schedule_type, trigger_status);

-- job_trigger_time: where each schedule stands; next_time is NULL while it is paused or waits for something else than the clock.
CREATE TABLE job_trigger_time (
    trigger_id BIGINT NOT NULL PRIMARY KEY,
    revision BIGINT NOT NULL,
    next_time DATETIME(3),
    last_time DATETIME(3),
    update_time DATETIME(3) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_trigger_time_next ON job_trigger_time (next_time, trigger_id);

-- job_firing: one planned time of one schedule, and what became of it.
CREATE TABLE job_firing (
    firing_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    trigger_id BIGINT NOT NULL,
    planned_at DATETIME(3) NOT NULL,
    nominal_date VARCHAR(10),
    source VARCHAR(20) NOT NULL,
    handler VARCHAR(50) NOT NULL,
    status VARCHAR(10) NOT NULL,
    fire_at DATETIME(3) NOT NULL,
    owner VARCHAR(64),
    attempt INT NOT NULL DEFAULT 0,
    params LONGTEXT,
    parent_batch_id BIGINT,
    missed_until DATETIME(3),
    batch_no VARCHAR(64),
    reason LONGTEXT,
    fired_at DATETIME(3),
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_job_firing UNIQUE (trigger_id, planned_at)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_firing_due ON job_firing (status, fire_at);

CREATE INDEX ix_job_firing_open ON job_firing (trigger_id, status, planned_at);

CREATE INDEX ix_job_firing_parent ON job_firing (parent_batch_id, trigger_id);

-- job_lock: rows that are locked by whoever does what only one may do; `schedule_lock` by whoever plans.
CREATE TABLE job_lock (
    lock_name VARCHAR(50) NOT NULL PRIMARY KEY,
    owner VARCHAR(64),
    epoch BIGINT NOT NULL DEFAULT 0,
    update_time DATETIME(3)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

INSERT INTO job_lock (lock_name) VALUES ('schedule_lock');

ALTER TABLE job_batch ADD COLUMN firing_id BIGINT;

CREATE INDEX ix_job_batch_firing ON job_batch (firing_id);

CREATE INDEX ix_job_batch_end ON job_batch (group_code, end_time);
