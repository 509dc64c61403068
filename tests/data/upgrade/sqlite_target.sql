PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE effects (job VARCHAR(64) NOT NULL);
INSERT INTO effects VALUES('LOAD_GL');
INSERT INTO effects VALUES('VALUE');
CREATE TABLE switches (job VARCHAR(64), work BIGINT NOT NULL);
INSERT INTO switches VALUES('FX_RATES',0);
CREATE TABLE procession_ledger (
    idem_key TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    batch_no TEXT NOT NULL,
    job_code TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    outputs TEXT,
    opened_at TEXT NOT NULL,
    done_at TEXT
);
INSERT INTO procession_ledger VALUES('ee6a0b7c5de2/202407/LOAD_GL/1','done','202407','LOAD_GL',1,'{"rows_affected":1}','2026-11-24T20:28:41.182+00:00','2026-11-24T20:28:41.183+00:00');
INSERT INTO procession_ledger VALUES('ee6a0b7c5de2/202407/VALUE/1','done','202407','VALUE',1,'{"rows_affected":1}','2026-11-24T20:28:41.191+00:00','2026-11-24T20:28:41.191+00:00');
COMMIT;
