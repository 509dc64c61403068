-- user_second_factor, recovery_code: second factors of users who log in with a password.
CREATE TABLE user_second_factor (
    user_id INTEGER PRIMARY KEY,
    secret_sealed TEXT NOT NULL,
    is_active INTEGER NOT NULL,
    last_step INTEGER,
    failures INTEGER NOT NULL,
    failed_time TEXT,
    create_time TEXT NOT NULL,
    active_time TEXT
);

CREATE TABLE recovery_code (
    code_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    code_hash TEXT NOT NULL,
    used_time TEXT,
    CONSTRAINT uq_recovery_code UNIQUE (user_id, code_hash)
);
