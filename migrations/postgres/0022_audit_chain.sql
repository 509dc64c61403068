-- audit_seal: the hash chain over audit_log, one row per act; stays when the act is removed.
CREATE TABLE audit_seal (
    seal_no BIGINT NOT NULL PRIMARY KEY,
    audit_id BIGINT NOT NULL,
    act_time TIMESTAMPTZ(3) NOT NULL,
    row_hash VARCHAR(64) NOT NULL,
    chain_hash VARCHAR(64) NOT NULL,
    CONSTRAINT uq_audit_seal_act UNIQUE (audit_id)
);

-- audit_head: the end of the hash chain, and the lock of whoever goes on with it; one row.
CREATE TABLE audit_head (
    head_id BIGINT NOT NULL PRIMARY KEY,
    seal_no BIGINT NOT NULL,
    chain_hash VARCHAR(64) NOT NULL,
    settled_id BIGINT NOT NULL
);

INSERT INTO audit_head (head_id, seal_no, chain_hash, settled_id)
VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000', 0);
