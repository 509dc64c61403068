-- change_request: changes that wait for the approval of a second person, and what became of them.
CREATE TABLE change_request (
    change_request_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    status VARCHAR(20) NOT NULL,
    user_id BIGINT NOT NULL,
    author VARCHAR(200) NOT NULL,
    author_host VARCHAR(255) NOT NULL,
    token_id BIGINT,
    action VARCHAR(20) NOT NULL,
    demands_json LONGTEXT NOT NULL,
    method VARCHAR(10) NOT NULL,
    path VARCHAR(1000) NOT NULL,
    body LONGTEXT NOT NULL,
    summary VARCHAR(500) NOT NULL,
    effect_json LONGTEXT NOT NULL,
    fingerprint VARCHAR(64) NOT NULL,
    reason TEXT NOT NULL,
    create_time DATETIME(3) NOT NULL,
    expire_time DATETIME(3) NOT NULL,
    decided_by VARCHAR(200),
    decided_from VARCHAR(255),
    decision_comment TEXT,
    decide_time DATETIME(3),
    is_alone TINYINT NOT NULL DEFAULT 0,
    claim VARCHAR(64),
    claim_time DATETIME(3),
    carried_out_time DATETIME(3),
    answer_status INT,
    answer LONGTEXT
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_change_request_status ON change_request (status, expire_time);
