-- job_output_value: values that jobs returned and that are too long for their row, in chunks.
CREATE TABLE job_output_value (
    queue_id BIGINT NOT NULL,
    attempt INT NOT NULL,
    value_no INT NOT NULL,
    chunk_no INT NOT NULL,
    name TEXT NOT NULL,
    content LONGTEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    PRIMARY KEY (queue_id, attempt, value_no, chunk_no)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
