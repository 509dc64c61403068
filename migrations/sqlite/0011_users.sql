-- Users: who may do what, how they prove who they are, and what was done once.

-- app_user: who may log in; never holds a password.
CREATE TABLE app_user (
    user_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_name TEXT NOT NULL,
    display_name TEXT NOT NULL,
    lang TEXT,
    password_hash TEXT,
    must_change INTEGER NOT NULL,
    password_until TEXT,
    is_active INTEGER NOT NULL,
    oidc_issuer TEXT,
    oidc_subject TEXT,
    last_login TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_app_user_name UNIQUE (user_name),
    CONSTRAINT uq_app_user_oidc UNIQUE (oidc_issuer, oidc_subject)
);

-- user_grant: who is what in which group; `*` is everywhere.
CREATE TABLE user_grant (
    grant_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    place TEXT NOT NULL,
    role TEXT NOT NULL,
    rights TEXT NOT NULL,
    origin TEXT NOT NULL,
    create_time TEXT NOT NULL,
    CONSTRAINT uq_user_grant UNIQUE (user_id, place, role, origin)
);

-- user_session: who is logged in; of a session's secret only a digest.
CREATE TABLE user_session (
    session_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    secret_hash TEXT NOT NULL,
    proof TEXT NOT NULL,
    address TEXT NOT NULL,
    agent TEXT,
    create_time TEXT NOT NULL,
    used_time TEXT NOT NULL,
    end_time TEXT NOT NULL,
    CONSTRAINT uq_user_session UNIQUE (secret_hash)
);

CREATE INDEX ix_user_session_user ON user_session (user_id);

CREATE INDEX ix_user_session_end ON user_session (end_time);

-- api_token: what programs show instead of a password; only a digest of it.
CREATE TABLE api_token (
    token_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    token_name TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    permissions TEXT NOT NULL,
    groups_only TEXT,
    create_time TEXT NOT NULL,
    end_time TEXT NOT NULL,
    used_time TEXT,
    CONSTRAINT uq_api_token UNIQUE (secret_hash)
);

CREATE INDEX ix_api_token_user ON api_token (user_id);

-- login_attempt: tries to log in that did not succeed, for an hour.
CREATE TABLE login_attempt (
    attempt_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_name TEXT NOT NULL,
    address TEXT NOT NULL,
    create_time TEXT NOT NULL
);

CREATE INDEX ix_login_attempt_user ON login_attempt (user_name, create_time);

CREATE INDEX ix_login_attempt_address ON login_attempt (address, create_time);

CREATE INDEX ix_login_attempt_time ON login_attempt (create_time);

-- oidc_login: logins that are on their way to another provider and back; only a digest of what the browser holds.
CREATE TABLE oidc_login (
    login_id INTEGER PRIMARY KEY AUTOINCREMENT,
    secret_hash TEXT NOT NULL,
    create_time TEXT NOT NULL,
    CONSTRAINT uq_oidc_login UNIQUE (secret_hash)
);

CREATE INDEX ix_oidc_login_time ON oidc_login (create_time);

-- idempotency_key: changes that were sent with a key, and what was answered.
CREATE TABLE idempotency_key (
    idempotency_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    idem_key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    status INTEGER,
    answer TEXT,
    create_time TEXT NOT NULL,
    CONSTRAINT uq_idempotency_key UNIQUE (user_id, idem_key)
);

CREATE INDEX ix_idempotency_key_time ON idempotency_key (create_time);
