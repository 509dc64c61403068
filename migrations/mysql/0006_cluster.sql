-- Work on other nodes: what a node offers, and what it says of the tries it ran for others.

ALTER TABLE cluster_node ADD COLUMN node_name VARCHAR(255) NOT NULL DEFAULT '';

ALTER TABLE cluster_node ADD COLUMN incarnation INT NOT NULL DEFAULT 1;

ALTER TABLE cluster_node ADD COLUMN roles VARCHAR(64) NOT NULL DEFAULT '';

ALTER TABLE cluster_node ADD COLUMN labels TEXT;

ALTER TABLE cluster_node ADD COLUMN max_parallel INT NOT NULL DEFAULT 0;

ALTER TABLE cluster_node ADD COLUMN running INT NOT NULL DEFAULT 0;

ALTER TABLE cluster_node ADD COLUMN counted_at DATETIME(3);

ALTER TABLE cluster_node ADD COLUMN is_draining TINYINT NOT NULL DEFAULT 0;

ALTER TABLE cluster_node ADD COLUMN address VARCHAR(255);

ALTER TABLE cluster_node ADD COLUMN skew_ms BIGINT NOT NULL DEFAULT 0;

CREATE INDEX ix_cluster_node_lease ON cluster_node (lease_until);

ALTER TABLE job_queue ADD COLUMN is_taken TINYINT NOT NULL DEFAULT 1;

CREATE INDEX ix_job_queue_owner ON job_queue (owner, status);

-- job_report: how a try ended that ran on another node than the one that dispatches its batch, until that has settled it.
CREATE TABLE job_report (
    queue_id BIGINT NOT NULL,
    attempt INT NOT NULL,
    batch_id BIGINT NOT NULL,
    owner VARCHAR(64) NOT NULL,
    report LONGTEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    PRIMARY KEY (queue_id, attempt)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_report_batch ON job_report (batch_id);
