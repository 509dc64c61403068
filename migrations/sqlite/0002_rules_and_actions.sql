-- What definitions, batches and operators may say beyond the first version.

ALTER TABLE job_group ADD COLUMN options TEXT;

ALTER TABLE job_def ADD COLUMN trigger_rule TEXT NOT NULL DEFAULT 'all_success';

ALTER TABLE job_def ADD COLUMN run_mode TEXT;

ALTER TABLE job_dependency ADD COLUMN edge_condition TEXT;

ALTER TABLE job_queue ADD COLUMN skip_kind TEXT;

ALTER TABLE job_queue ADD COLUMN run_mode TEXT;

ALTER TABLE job_queue ADD COLUMN priority INTEGER;

ALTER TABLE job_batch ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;

ALTER TABLE job_batch ADD COLUMN is_paused INTEGER NOT NULL DEFAULT 0;

ALTER TABLE job_batch ADD COLUMN parent_queue_id INTEGER;

ALTER TABLE job_batch ADD COLUMN backfill_id INTEGER;

ALTER TABLE job_batch ADD COLUMN deadline TEXT;

-- job_external_dependency: what runs after jobs or batches of other numbers and groups.
CREATE TABLE job_external_dependency (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    group_code TEXT NOT NULL,
    depends_on TEXT,
    batch_expr TEXT NOT NULL,
    edge_condition TEXT,
    missing TEXT NOT NULL,
    wait_sec INTEGER,
    dependency_order INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX ix_job_external_job ON job_external_dependency (job_code);

-- resource_pool: slots that jobs of any group share.
CREATE TABLE resource_pool (
    pool_id INTEGER PRIMARY KEY AUTOINCREMENT,
    pool_name TEXT NOT NULL,
    slots INTEGER NOT NULL,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_resource_pool UNIQUE (pool_name)
);

-- job_owner: who answers for jobs and groups.
CREATE TABLE job_owner (
    owner_id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner_name TEXT NOT NULL,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_job_owner UNIQUE (owner_name)
);

-- http_host: hosts that HTTP jobs may call.
CREATE TABLE http_host (
    host_id INTEGER PRIMARY KEY AUTOINCREMENT,
    host_name TEXT NOT NULL,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_http_host UNIQUE (host_name)
);

-- secret_source: where secrets come from; never holds one in the clear.
CREATE TABLE secret_source (
    secret_id INTEGER PRIMARY KEY AUTOINCREMENT,
    secret_name TEXT NOT NULL,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_secret_source UNIQUE (secret_name)
);

-- global_param: parameters of every batch of every group.
CREATE TABLE global_param (
    param_id INTEGER PRIMARY KEY AUTOINCREMENT,
    param_name TEXT NOT NULL,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_global_param UNIQUE (param_name)
);

-- sealed_secret: secrets sealed under the installation's key.
CREATE TABLE sealed_secret (
    secret_name TEXT NOT NULL PRIMARY KEY,
    sealed TEXT NOT NULL,
    sealed_by TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL
);

-- definition_version: what was defined, each time it changed.
CREATE TABLE definition_version (
    version_id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_code TEXT NOT NULL,
    version_no INTEGER NOT NULL,
    author TEXT NOT NULL,
    remark TEXT,
    definition TEXT NOT NULL,
    create_time TEXT NOT NULL,
    CONSTRAINT uq_definition_version UNIQUE (group_code, version_no)
);

-- audit_log: who did what, when and why; only ever added to.
CREATE TABLE audit_log (
    audit_id INTEGER PRIMARY KEY AUTOINCREMENT,
    actor TEXT NOT NULL,
    host TEXT NOT NULL,
    action TEXT NOT NULL,
    group_code TEXT,
    batch_id INTEGER,
    batch_no TEXT,
    job_code TEXT,
    detail TEXT,
    reason TEXT,
    create_time TEXT NOT NULL
);

CREATE INDEX ix_audit_log_batch ON audit_log (batch_id, audit_id);

CREATE INDEX ix_audit_log_time ON audit_log (create_time);

-- backfill: runs of a range of batches.
CREATE TABLE backfill (
    backfill_id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_code TEXT NOT NULL,
    range_text TEXT NOT NULL,
    status TEXT NOT NULL,
    options TEXT NOT NULL,
    owner TEXT,
    started_by TEXT NOT NULL,
    reason TEXT,
    create_time TEXT NOT NULL,
    end_time TEXT,
    update_time TEXT NOT NULL
);

-- backfill_batch: the batches of a backfill, in their order.
CREATE TABLE backfill_batch (
    backfill_id INTEGER NOT NULL,
    place INTEGER NOT NULL,
    batch_no TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT,
    update_time TEXT NOT NULL,
    PRIMARY KEY (backfill_id, place),
    CONSTRAINT uq_backfill_batch UNIQUE (backfill_id, batch_no)
);

CREATE INDEX ix_job_batch_group ON job_batch (group_code, batch_no);
