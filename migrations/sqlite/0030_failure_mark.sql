-- failure_mark: what people said about a job that failed: who looks after it, and whether it is acknowledged.
CREATE TABLE failure_mark (
    queue_id INTEGER NOT NULL PRIMARY KEY,
    batch_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    assignee TEXT,
    note TEXT,
    acknowledged_by TEXT,
    acknowledge_time TEXT,
    update_time TEXT NOT NULL
);

CREATE INDEX ix_failure_mark_batch ON failure_mark (batch_id);
