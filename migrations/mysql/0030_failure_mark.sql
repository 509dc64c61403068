-- failure_mark: what people said about a job that failed: who looks after it, and whether it is acknowledged.
CREATE TABLE failure_mark (
    queue_id BIGINT NOT NULL PRIMARY KEY,
    batch_id BIGINT NOT NULL,
    attempt INT NOT NULL,
    assignee VARCHAR(100),
    note TEXT,
    acknowledged_by VARCHAR(200),
    acknowledge_time DATETIME(3),
    update_time DATETIME(3) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_failure_mark_batch ON failure_mark (batch_id);
