-- Users: who may do what, how they prove who they are, and what was done once.

-- app_user: who may log in; never holds a password.
CREATE TABLE app_user (
    user_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_name VARCHAR(64) NOT NULL,
    display_name VARCHAR(200) NOT NULL,
    lang VARCHAR(2),
    password_hash VARCHAR(255),
    must_change TINYINT NOT NULL,
    password_until DATETIME(3),
    is_active TINYINT NOT NULL,
    oidc_issuer VARCHAR(255),
    oidc_subject VARCHAR(255),
    last_login DATETIME(3),
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_app_user_name UNIQUE (user_name),
    CONSTRAINT uq_app_user_oidc UNIQUE (oidc_issuer, oidc_subject)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- user_grant: who is what in which group; `*` is everywhere.
CREATE TABLE user_grant (
    grant_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    place VARCHAR(64) NOT NULL,
    role VARCHAR(20) NOT NULL,
    rights VARCHAR(200) NOT NULL,
    origin VARCHAR(10) NOT NULL,
    create_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_user_grant UNIQUE (user_id, place, role, origin)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- user_session: who is logged in; of a session's secret only a digest.
CREATE TABLE user_session (
    session_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    secret_hash VARCHAR(64) NOT NULL,
    proof VARCHAR(10) NOT NULL,
    address VARCHAR(64) NOT NULL,
    agent VARCHAR(200),
    create_time DATETIME(3) NOT NULL,
    used_time DATETIME(3) NOT NULL,
    end_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_user_session UNIQUE (secret_hash)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_user_session_user ON user_session (user_id);

CREATE INDEX ix_user_session_end ON user_session (end_time);

-- api_token: what programs show instead of a password; only a digest of it.
CREATE TABLE api_token (
    token_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    token_name VARCHAR(100) NOT NULL,
    secret_hash VARCHAR(64) NOT NULL,
    permissions VARCHAR(200) NOT NULL,
    groups_only TEXT,
    create_time DATETIME(3) NOT NULL,
    end_time DATETIME(3) NOT NULL,
    used_time DATETIME(3),
    CONSTRAINT uq_api_token UNIQUE (secret_hash)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_api_token_user ON api_token (user_id);

-- login_attempt: tries to log in that did not succeed, for an hour.
CREATE TABLE login_attempt (
    attempt_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_name VARCHAR(64) NOT NULL,
    address VARCHAR(64) NOT NULL,
    create_time DATETIME(3) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_login_attempt_user ON login_attempt (user_name, create_time);

CREATE INDEX ix_login_attempt_address ON login_attempt (address, create_time);

CREATE INDEX ix_login_attempt_time ON login_attempt (create_time);

-- oidc_login: logins that are on their way to another provider and back; only a digest of what the browser holds.
CREATE TABLE oidc_login (
    login_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    secret_hash VARCHAR(64) NOT NULL,
    create_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_oidc_login UNIQUE (secret_hash)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_oidc_login_time ON oidc_login (create_time);

-- idempotency_key: changes that were sent with a key, and what was answered.
CREATE TABLE idempotency_key (
    idempotency_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    idem_key VARCHAR(200) NOT NULL,
    request_hash VARCHAR(64) NOT NULL,
    status BIGINT,
    answer LONGTEXT,
    create_time DATETIME(3) NOT NULL,
    CONSTRAINT uq_idempotency_key UNIQUE (user_id, idem_key)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_idempotency_key_time ON idempotency_key (create_time);
