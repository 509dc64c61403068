-- job_output_value: values that jobs returned and that are too long for their row, in chunks.
CREATE TABLE job_output_value (
    queue_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    value_no INTEGER NOT NULL,
    chunk_no INTEGER NOT NULL,
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    create_time TEXT NOT NULL,
    PRIMARY KEY (queue_id, attempt, value_no, chunk_no)
);
