-- user_second_factor: second factors of users who log in with a password; the secret is sealed.
CREATE TABLE user_second_factor (
    user_id INTEGER NOT NULL PRIMARY KEY,
    secret_sealed TEXT NOT NULL,
    is_active INTEGER NOT NULL,
    last_step INTEGER,
    failures INTEGER NOT NULL,
    failed_time TEXT,
    create_time TEXT NOT NULL,
    active_time TEXT
);

-- recovery_code: codes that work once in the place of a one-time code; only digests of them.
CREATE TABLE recovery_code (
    code_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    code_hash TEXT NOT NULL,
    used_time TEXT,
    CONSTRAINT uq_recovery_code UNIQUE (user_id, code_hash)
);
