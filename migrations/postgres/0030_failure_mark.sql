-- failure_mark: what people said about a job that failed: who looks after it, and whether it is acknowledged.
CREATE TABLE failure_mark (
    queue_id BIGINT NOT NULL PRIMARY KEY,
    batch_id BIGINT NOT NULL,
    attempt INTEGER NOT NULL,
    assignee VARCHAR(100),
    note TEXT,
    acknowledged_by VARCHAR(200),
    acknowledge_time TIMESTAMPTZ(3),
    update_time TIMESTAMPTZ(3) NOT NULL
);

CREATE INDEX ix_failure_mark_batch ON failure_mark (batch_id);
