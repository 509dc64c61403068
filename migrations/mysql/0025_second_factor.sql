-- user_second_factor: second factors of users who log in with a password; the secret is sealed.
CREATE TABLE user_second_factor (
    user_id BIGINT NOT NULL PRIMARY KEY,
    secret_sealed VARCHAR(500) NOT NULL,
    is_active TINYINT NOT NULL,
    last_step BIGINT,
    failures INT NOT NULL,
    failed_time DATETIME(3),
    create_time DATETIME(3) NOT NULL,
    active_time DATETIME(3)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- recovery_code: codes that work once in the place of a one-time code; only digests of them.
CREATE TABLE recovery_code (
    code_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    code_hash VARCHAR(64) NOT NULL,
    used_time DATETIME(3),
    CONSTRAINT uq_recovery_code UNIQUE (user_id, code_hash)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
