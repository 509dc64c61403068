-- A job code is unique within its group, and no longer in the whole installation.

-- The idempotency key of a row of an earlier version has no group: what the row did is in the ledger under that key.
ALTER TABLE job_queue ADD COLUMN key_has_group TINYINT NOT NULL DEFAULT 0;

CREATE INDEX ix_job_queue_no ON job_queue (batch_no, job_code);

-- A dependency of a job that is not defined has no group, and nothing reads it.
DELETE FROM job_dependency WHERE NOT EXISTS
    (SELECT 1 FROM job_def d WHERE d.job_code = job_dependency.job_code);

DELETE FROM job_external_dependency WHERE NOT EXISTS
    (SELECT 1 FROM job_def d WHERE d.job_code = job_external_dependency.job_code);

ALTER TABLE job_dependency ADD COLUMN group_code VARCHAR(64) NOT NULL DEFAULT '';

UPDATE job_dependency SET group_code =
    (SELECT d.group_code FROM job_def d WHERE d.job_code = job_dependency.job_code);

ALTER TABLE job_external_dependency ADD COLUMN waiting_group VARCHAR(64) NOT NULL DEFAULT '';

UPDATE job_external_dependency SET waiting_group =
    (SELECT d.group_code FROM job_def d WHERE d.job_code = job_external_dependency.job_code);

-- A mark of a job that is not defined any more is of the group whose batch it was found in.
ALTER TABLE tx_breach ADD COLUMN group_code VARCHAR(64) NOT NULL DEFAULT '';

UPDATE tx_breach SET group_code =
    COALESCE((SELECT d.group_code FROM job_def d WHERE d.job_code = tx_breach.job_code),
    (SELECT b.group_code FROM job_queue q JOIN job_batch b ON b.batch_id = q.batch_id
    WHERE q.queue_id = tx_breach.queue_id), '');

-- A number whose job is neither defined nor in a run that is kept stays, so that it is not given again.
ALTER TABLE executor_job ADD COLUMN group_code VARCHAR(64) NOT NULL DEFAULT '';

UPDATE executor_job SET group_code =
    COALESCE((SELECT d.group_code FROM job_def d WHERE d.job_code = executor_job.job_code),
    (SELECT MAX(b.group_code) FROM job_batch b WHERE b.batch_id =
    (SELECT MAX(r.batch_id) FROM executor_run r WHERE r.job_id = executor_job.job_id)), '');

ALTER TABLE job_queue DROP INDEX uq_job_queue, ADD CONSTRAINT uq_job_queue UNIQUE (batch_id, job_code);

ALTER TABLE job_def DROP INDEX uq_job_def_code, ADD CONSTRAINT uq_job_def_code UNIQUE (group_code, job_code);

ALTER TABLE job_dependency DROP INDEX uq_job_dependency, ADD CONSTRAINT uq_job_dependency UNIQUE (group_code, job_code, depends_on);

ALTER TABLE executor_job DROP INDEX uq_executor_job_code, ADD CONSTRAINT uq_executor_job_code UNIQUE (group_code, job_code);

ALTER TABLE tx_breach DROP PRIMARY KEY, ADD PRIMARY KEY (group_code, job_code);

ALTER TABLE job_dependency ALTER COLUMN group_code DROP DEFAULT;

ALTER TABLE job_external_dependency ALTER COLUMN waiting_group DROP DEFAULT;

ALTER TABLE tx_breach ALTER COLUMN group_code DROP DEFAULT;

ALTER TABLE executor_job ALTER COLUMN group_code DROP DEFAULT;

DROP INDEX ix_job_def_group ON job_def;

CREATE INDEX ix_job_def_code ON job_def (job_code);

DROP INDEX ix_job_external_job ON job_external_dependency;

CREATE INDEX ix_job_external_job ON job_external_dependency (waiting_group, job_code);
