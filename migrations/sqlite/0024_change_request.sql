-- change_request: changes that wait for the approval of a second person, and what became of them.
CREATE TABLE change_request (
    change_request_id INTEGER PRIMARY KEY AUTOINCREMENT,
    status TEXT NOT NULL,
    user_id INTEGER NOT NULL,
    author TEXT NOT NULL,
    author_host TEXT NOT NULL,
    token_id INTEGER,
    action TEXT NOT NULL,
    demands_json TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    body TEXT NOT NULL,
    summary TEXT NOT NULL,
    effect_json TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    reason TEXT NOT NULL,
    create_time TEXT NOT NULL,
    expire_time TEXT NOT NULL,
    decided_by TEXT,
    decided_from TEXT,
    decision_comment TEXT,
    decide_time TEXT,
    is_alone INTEGER NOT NULL DEFAULT 0,
    claim TEXT,
    claim_time TEXT,
    carried_out_time TEXT,
    answer_status INTEGER,
    answer TEXT
);

CREATE INDEX ix_change_request_status ON change_request (status, expire_time);
