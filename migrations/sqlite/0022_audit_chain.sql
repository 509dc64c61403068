-- audit_seal: the hash chain over audit_log, one row per act; stays when the act is removed.
CREATE TABLE audit_seal (
    seal_no INTEGER NOT NULL PRIMARY KEY,
    audit_id INTEGER NOT NULL,
    act_time TEXT NOT NULL,
    row_hash TEXT NOT NULL,
    chain_hash TEXT NOT NULL,
    CONSTRAINT uq_audit_seal_act UNIQUE (audit_id)
);

-- audit_head: the end of the hash chain, and the lock of whoever goes on with it; one row.
CREATE TABLE audit_head (
    head_id INTEGER NOT NULL PRIMARY KEY,
    seal_no INTEGER NOT NULL,
    chain_hash TEXT NOT NULL,
    settled_id INTEGER NOT NULL
);

INSERT INTO audit_head (head_id, seal_no, chain_hash, settled_id)
VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000', 0);
