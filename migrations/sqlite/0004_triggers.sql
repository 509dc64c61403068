-- Schedules: when something fires, and what became of each planned time.

-- job_trigger: a schedule: when which order is handed to which handler; `body` holds all of it as JSON.
CREATE TABLE job_trigger (
    trigger_id INTEGER PRIMARY KEY AUTOINCREMENT,
    trigger_code TEXT NOT NULL,
    trigger_name TEXT NOT NULL,
    group_code TEXT,
    schedule_type TEXT NOT NULL,
    schedule_conf TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    handler TEXT NOT NULL,
    trigger_status TEXT NOT NULL,
    reason TEXT,
    origin TEXT NOT NULL,
    revision INTEGER NOT NULL DEFAULT 1,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_job_trigger_code UNIQUE (trigger_code)
);

CREATE INDEX ix_job_trigger_type ON job_trigger (schedule_type, trigger_status);

-- job_trigger_time: where each schedule stands; next_time is NULL while it is paused or waits for something else than the clock.
CREATE TABLE job_trigger_time (
    trigger_id INTEGER NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    next_time TEXT,
    last_time TEXT,
    update_time TEXT NOT NULL
);

CREATE INDEX ix_job_trigger_time_next ON job_trigger_time (next_time, trigger_id);

-- job_firing: one planned time of one schedule, and what became of it.
CREATE TABLE job_firing (
    firing_id INTEGER PRIMARY KEY AUTOINCREMENT,
    trigger_id INTEGER NOT NULL,
    planned_at TEXT NOT NULL,
    nominal_date TEXT,
    source TEXT NOT NULL,
    handler TEXT NOT NULL,
    status TEXT NOT NULL,
    fire_at TEXT NOT NULL,
    owner TEXT,
    attempt INTEGER NOT NULL DEFAULT 0,
    params TEXT,
    parent_batch_id INTEGER,
    missed_until TEXT,
    batch_no TEXT,
    reason TEXT,
    fired_at TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_job_firing UNIQUE (trigger_id, planned_at)
);

CREATE INDEX ix_job_firing_due ON job_firing (status, fire_at);

CREATE INDEX ix_job_firing_open ON job_firing (trigger_id, status, planned_at);

CREATE INDEX ix_job_firing_parent ON job_firing (parent_batch_id, trigger_id);

-- job_lock: rows that are locked by whoever does what only one may do; `schedule_lock` by whoever plans.
CREATE TABLE job_lock (
    lock_name TEXT NOT NULL PRIMARY KEY,
    owner TEXT,
    epoch INTEGER NOT NULL DEFAULT 0,
    update_time TEXT
);

INSERT INTO job_lock (lock_name) VALUES ('schedule_lock');

ALTER TABLE job_batch ADD COLUMN firing_id INTEGER;

CREATE INDEX ix_job_batch_firing ON job_batch (firing_id);

CREATE INDEX ix_job_batch_end ON job_batch (group_code, end_time);
