-- job_approval: what APPROVAL jobs ask of people, and who decided it.
CREATE TABLE job_approval (
    approval_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    queue_id BIGINT NOT NULL,
    run_no BIGINT NOT NULL,
    try_no INT NOT NULL,
    batch_id BIGINT NOT NULL,
    batch_no VARCHAR(64) NOT NULL,
    group_code VARCHAR(64) NOT NULL,
    job_code VARCHAR(100) NOT NULL,
    status VARCHAR(20) NOT NULL,
    rule_json TEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    deadline DATETIME(3) NOT NULL,
    decided_by VARCHAR(200),
    decided_from VARCHAR(255),
    decision_comment TEXT,
    end_time DATETIME(3),
    CONSTRAINT uq_job_approval UNIQUE (queue_id, run_no, try_no)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_job_approval_status ON job_approval (status, group_code);

CREATE INDEX ix_job_approval_batch ON job_approval (batch_id);
