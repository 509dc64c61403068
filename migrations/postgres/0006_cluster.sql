-- Work on other nodes: what a node offers, and what it says of the tries it ran for others.

ALTER TABLE cluster_node ADD COLUMN node_name VARCHAR(255) NOT NULL DEFAULT '';

ALTER TABLE cluster_node ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 1;

ALTER TABLE cluster_node ADD COLUMN roles VARCHAR(64) NOT NULL DEFAULT '';

ALTER TABLE cluster_node ADD COLUMN labels TEXT;

ALTER TABLE cluster_node ADD COLUMN max_parallel INTEGER NOT NULL DEFAULT 0;

ALTER TABLE cluster_node ADD COLUMN running INTEGER NOT NULL DEFAULT 0;

ALTER TABLE cluster_node ADD COLUMN counted_at TIMESTAMPTZ(3);

ALTER TABLE cluster_node ADD COLUMN is_draining SMALLINT NOT NULL DEFAULT 0;

ALTER TABLE cluster_node ADD COLUMN address VARCHAR(255);

ALTER TABLE cluster_node ADD COLUMN skew_ms BIGINT NOT NULL DEFAULT 0;

CREATE INDEX ix_cluster_node_lease ON cluster_node (lease_until);

ALTER TABLE job_queue ADD COLUMN is_taken SMALLINT NOT NULL DEFAULT 1;

CREATE INDEX ix_job_queue_owner ON job_queue (owner, status);

-- job_report: how a try ended that ran on another node than the one that dispatches its batch, until that has settled it.
CREATE TABLE job_report (
    queue_id BIGINT NOT NULL,
    attempt INTEGER NOT NULL,
    batch_id BIGINT NOT NULL,
    owner VARCHAR(64) NOT NULL,
    report TEXT NOT NULL,
    create_time TIMESTAMPTZ(3) NOT NULL,
    PRIMARY KEY (queue_id, attempt)
);

CREATE INDEX ix_job_report_batch ON job_report (batch_id);
