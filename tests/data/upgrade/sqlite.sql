PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);
INSERT INTO _sqlx_migrations VALUES(1,'first tables','2026-11-24 20:28:40',1,X'd445113006fcf210811bac19a8724e71fb7017ebadb47b8aad17919fe63d9159e1d66234b496370c92428359d4dc710e',1027443);
INSERT INTO _sqlx_migrations VALUES(2,'rules and actions','2026-11-24 20:28:40',1,X'9be8d99cb5553f2dff23712acfdc6ec2d0e83226faf0d02dea68519e9a5aedec8bfe06fb18456fa4a175a230f8b9af33',1947205);
INSERT INTO _sqlx_migrations VALUES(3,'trust','2026-11-24 20:28:40',1,X'6208314f30bb1e88a1167015b54e06f17fb932d981931d209980fdd0df876b93dcfc9ae964c0319b1130e5864ef7a7ec',1066781);
INSERT INTO _sqlx_migrations VALUES(4,'triggers','2026-11-24 20:28:40',1,X'216fb8075f706cdadb1266ab8b2f5da9830df1b878f8bf7113f0a5c9d308d40688538a79e0f51b27fae545e0114b0eaf',529199);
INSERT INTO _sqlx_migrations VALUES(5,'calendar','2026-11-24 20:28:40',1,X'0971e3e4a26aeedadef4f182a93d4c886d9b50e74166f29f8a9b465d3f864d16f670795edbde008492ac7d944015e0cc',223133);
INSERT INTO _sqlx_migrations VALUES(6,'cluster','2026-11-24 20:28:40',1,X'4366b7a23789405c9063dfbd042220e6409ec731736a5a7849d95d91a9972c1ea925e2265703394af34119ca1f3c61b0',2429195);
INSERT INTO _sqlx_migrations VALUES(7,'event key','2026-11-24 20:28:40',1,X'20c5a03b9ea0106e10289802d9e30f85c1e2e6e955bde01dd075e2dce5f504178705c2a7520d95ae9c16c89ad04269cd',148862);
INSERT INTO _sqlx_migrations VALUES(8,'retention','2026-11-24 20:28:40',1,X'de4fad9b22b6318748f83549d4dbec7f951ea868cd843770530eb093870263aaec5406a578871c03161d425f312fde30',736059);
INSERT INTO _sqlx_migrations VALUES(9,'indexes','2026-11-24 20:28:40',1,X'3d5f6e55d0909258ac3d5ec496c15b5c8ddb5cdfb9a057c4a9aed6bfd2d0d6de515572eba9c162452dc903d43125daf3',249252);
INSERT INTO _sqlx_migrations VALUES(10,'outbox','2026-11-24 20:28:40',1,X'bf30ae78e10b1373a240b69453ccf16d9d6fba79a9d8d737f90c80e7b72d13ba75c0908780ffab2c70972d280e39ef97',2204841);
INSERT INTO _sqlx_migrations VALUES(11,'users','2026-11-24 20:28:40',1,X'f770309344e43c675e6badaa04db3294327deb94ef6599deda83a5014ba413d424db37462ba74abab526e17aa6475e09',434428);
INSERT INTO _sqlx_migrations VALUES(12,'audit','2026-11-24 20:28:40',1,X'd222eb28a8eb763e7a889dda3505bdd51ff3452037cd5ef0151318a6cc385c61db55db82bc24d4c4638c565a1304cb03',274550);
INSERT INTO _sqlx_migrations VALUES(13,'batches by time','2026-11-24 20:28:40',1,X'db1c873b6520a9d573ec6063afbaddc9c7437eed99417e7733fc3685154713ef80e47a038ed25c93af215a92eabcfebd',132077);
INSERT INTO _sqlx_migrations VALUES(14,'xxl run','2026-11-24 20:28:40',1,X'85e2f1458abd970d9b3efba63e7cf8f7fa885ac2845d54055cf1a4f7d3294487c15363ed297e8ebfb0c2d5595398380d',277734);
INSERT INTO _sqlx_migrations VALUES(15,'executor','2026-11-24 20:28:40',1,X'ebd8a09438919ce3a14de7f90d39c42d69fa127ca4c9141a0a17f0b601298084172a747949ca97fe0268ff76afe78ae5',463651);
INSERT INTO _sqlx_migrations VALUES(16,'hosted by','2026-11-24 20:28:40',1,X'559d14132cb6bf9ae95720412b570b9fe33364cc3714d71136e0a95f3491f1f5c2daf8d51132916e1a35ca2f1f501a9b',573196);
CREATE TABLE procession_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO procession_meta VALUES('definition_epoch','1');
INSERT INTO procession_meta VALUES('installation','ee6a0b7c5de24ccb8e4608b1cb5e66a7');
CREATE TABLE data_source (
    source_id INTEGER PRIMARY KEY AUTOINCREMENT,
    source_name TEXT NOT NULL,
    url TEXT NOT NULL,
    password_env TEXT,
    password_file TEXT,
    max_parallel INTEGER,
    procedures TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_data_source_name UNIQUE (source_name)
);
INSERT INTO data_source VALUES(1,'ledger','sqlite:/tmp/procession-upgrade/target.db',NULL,NULL,NULL,'{}','2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00');
CREATE TABLE job_group (
    group_id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_code TEXT NOT NULL,
    group_name TEXT NOT NULL,
    batch_type TEXT,
    owner TEXT,
    notify_email TEXT,
    max_parallel INTEGER,
    time_zone TEXT,
    params TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL, options TEXT,
    CONSTRAINT uq_job_group_code UNIQUE (group_code)
);
INSERT INTO job_group VALUES(1,'close','close','monthly',NULL,'close@bank.example',NULL,NULL,'[]','2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','{}');
INSERT INTO job_group VALUES(2,'risk','risk','monthly',NULL,'risk@bank.example',NULL,NULL,'[]','2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','{}');
INSERT INTO job_group VALUES(3,'checks','checks','monthly',NULL,'checks@bank.example',NULL,NULL,'[]','2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','{}');
CREATE TABLE job_def (
    job_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    job_name TEXT NOT NULL,
    proc_name TEXT,
    job_type TEXT NOT NULL,
    schedule_time TEXT,
    status TEXT,
    timeout_sec INTEGER NOT NULL DEFAULT 1800,
    retry_count INTEGER NOT NULL DEFAULT 0,
    notify_email TEXT,
    is_depend INTEGER NOT NULL DEFAULT 0,
    is_active INTEGER NOT NULL DEFAULT 1,
    last_run_time TEXT,
    next_run_time TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    group_code TEXT NOT NULL,
    source_name TEXT,
    retry_delay_sec INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL DEFAULT 0,
    is_idempotent INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    tags TEXT,
    body TEXT NOT NULL, trigger_rule TEXT NOT NULL DEFAULT 'all_success', run_mode TEXT,
    CONSTRAINT uq_job_def_code UNIQUE (job_code)
);
INSERT INTO job_def VALUES(1,'LOAD_GL','LOAD_GL',NULL,'SQL',NULL,NULL,1800,0,'',0,1,NULL,NULL,'2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','close','ledger',0,0,0,NULL,'','{"sql":"INSERT INTO effects VALUES (''LOAD_GL'')","transaction":"one","tx":"ledger"}','all_success',NULL);
INSERT INTO job_def VALUES(2,'COUNT_GL','COUNT_GL',NULL,'SCRIPT',NULL,NULL,1800,0,'',1,1,NULL,NULL,'2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','close',NULL,0,0,0,NULL,'','{"script":"echo counted; echo ::output rows=12","transaction":"one"}','all_success',NULL);
INSERT INTO job_def VALUES(3,'POST_GL','POST_GL',NULL,'SQL',NULL,NULL,3600,0,'',1,1,NULL,NULL,'2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','close','ledger',0,0,0,NULL,'','{"sql":"INSERT INTO effects SELECT ''POST_GL'' FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < (SELECT work FROM switches)) SELECT MAX(n) FROM c)","transaction":"one","tx":"ledger"}','all_success',NULL);
INSERT INTO job_def VALUES(4,'FX_RATES','FX_RATES',NULL,'SQL',NULL,NULL,1800,3,'',1,1,NULL,NULL,'2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','close','ledger',120,0,0,NULL,'','{"sql":"INSERT INTO effects SELECT job FROM switches","transaction":"one","tx":"ledger"}','all_success',NULL);
INSERT INTO job_def VALUES(5,'REPORT','REPORT',NULL,'SQL',NULL,NULL,1800,0,'',1,1,NULL,NULL,'2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','close','ledger',0,0,0,NULL,'','{"if":"COUNT_GL.rows == 12","sql":"INSERT INTO effects VALUES (''REPORT'')","transaction":"one","tx":"ledger"}','all_success',NULL);
INSERT INTO job_def VALUES(6,'VALUE','VALUE',NULL,'SQL',NULL,NULL,1800,0,'',0,1,NULL,NULL,'2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','risk','ledger',0,0,0,NULL,'','{"sql":"INSERT INTO effects VALUES (''VALUE'')","transaction":"one","tx":"ledger"}','all_success',NULL);
INSERT INTO job_def VALUES(7,'VAR','VAR',NULL,'SQL',NULL,NULL,1800,0,'',1,1,NULL,NULL,'2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','risk','ledger',0,0,0,NULL,'','{"sql":"INSERT INTO effects VALUES (''VAR'')","transaction":"one","tx":"ledger"}','all_success',NULL);
INSERT INTO job_def VALUES(8,'LIMITS','LIMITS',NULL,'SCRIPT',NULL,'FAILED',1800,0,'',0,1,'2026-11-24T20:28:41.169+00:00',NULL,'2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00','checks',NULL,0,0,0,NULL,'','{"script":"echo limit exceeded; exit 3","transaction":"one"}','all_success',NULL);
CREATE TABLE job_dependency (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    dependency_order INTEGER NOT NULL DEFAULT 0, edge_condition TEXT,
    CONSTRAINT uq_job_dependency UNIQUE (job_code, depends_on)
);
INSERT INTO job_dependency VALUES(1,'COUNT_GL','LOAD_GL',1,NULL);
INSERT INTO job_dependency VALUES(2,'POST_GL','COUNT_GL',1,NULL);
INSERT INTO job_dependency VALUES(3,'FX_RATES','LOAD_GL',1,NULL);
INSERT INTO job_dependency VALUES(4,'REPORT','POST_GL',1,NULL);
INSERT INTO job_dependency VALUES(5,'REPORT','FX_RATES',2,NULL);
INSERT INTO job_dependency VALUES(6,'VAR','VALUE',1,NULL);
CREATE TABLE cluster_node (
    node_id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    started_at TEXT NOT NULL,
    heartbeat_at TEXT NOT NULL,
    lease_until TEXT NOT NULL
, node_name TEXT NOT NULL DEFAULT '', incarnation INTEGER NOT NULL DEFAULT 1, roles TEXT NOT NULL DEFAULT '', labels TEXT, max_parallel INTEGER NOT NULL DEFAULT 0, running INTEGER NOT NULL DEFAULT 0, counted_at TEXT, is_draining INTEGER NOT NULL DEFAULT 0, address TEXT, skew_ms INTEGER NOT NULL DEFAULT 0);
INSERT INTO cluster_node VALUES('ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','etl-host',705,'0.1.0','2026-11-24T20:28:41.096+00:00','2026-11-24T20:28:41.096+00:00','2026-11-24T20:28:56.096+00:00','etl-old',1,'scheduler,worker','[]',8,0,NULL,0,NULL,0);
CREATE TABLE job_batch (
    batch_id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_no TEXT NOT NULL,
    group_code TEXT NOT NULL,
    batch_type TEXT,
    status TEXT NOT NULL,
    business_date TEXT,
    params TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    owner TEXT,
    started_by TEXT NOT NULL,
    reason TEXT,
    create_time TEXT NOT NULL,
    end_time TEXT,
    update_time TEXT NOT NULL, revision INTEGER NOT NULL DEFAULT 0, is_paused INTEGER NOT NULL DEFAULT 0, parent_queue_id INTEGER, backfill_id INTEGER, deadline TEXT, firing_id INTEGER, remove_time TEXT, lines_time TEXT,
    CONSTRAINT uq_job_batch UNIQUE (batch_no, group_code)
);
INSERT INTO job_batch VALUES(1,'202407','close','monthly','RUNNING','2024-07-31','{}','{"group":{"code":"close","name":"close","type":"monthly","notify_email":["close@bank.example"]},"jobs":[{"code":"LOAD_GL","name":"LOAD_GL","group":"close","type":"SQL","source":"ledger","sql":"INSERT INTO effects VALUES (''LOAD_GL'')","transaction":"one","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success"},{"code":"COUNT_GL","name":"COUNT_GL","group":"close","type":"SCRIPT","transaction":"one","script":"echo counted; echo ::output rows=12","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"is_active":true,"trigger_rule":"all_success"},{"code":"POST_GL","name":"POST_GL","group":"close","type":"SQL","source":"ledger","sql":"INSERT INTO effects SELECT ''POST_GL'' FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < (SELECT work FROM switches)) SELECT MAX(n) FROM c)","transaction":"one","timeout_sec":3600,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success"},{"code":"FX_RATES","name":"FX_RATES","group":"close","type":"SQL","source":"ledger","sql":"INSERT INTO effects SELECT job FROM switches","transaction":"one","timeout_sec":1800,"retry_count":3,"retry_delay_sec":120,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success"},{"code":"REPORT","name":"REPORT","group":"close","type":"SQL","source":"ledger","sql":"INSERT INTO effects VALUES (''REPORT'')","transaction":"one","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success","if":"COUNT_GL.rows == 12"}],"dependencies":[["COUNT_GL","LOAD_GL","POST_GL","FX_RATES","REPORT"],[0,1,1],[2,1,0],[3,1,1],[4,1,2,3]],"sources":[{"name":"ledger","url":"sqlite:/tmp/procession-upgrade/target.db"}]}','ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','unknown',NULL,'2026-11-24T20:28:41.037+00:00',NULL,'2026-11-24T20:28:41.158+00:00',0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO job_batch VALUES(2,'202407','risk','monthly','RUNNING','2024-07-31','{}','{"group":{"code":"risk","name":"risk","type":"monthly","notify_email":["risk@bank.example"]},"jobs":[{"code":"VALUE","name":"VALUE","group":"risk","type":"SQL","source":"ledger","sql":"INSERT INTO effects VALUES (''VALUE'')","transaction":"one","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success"},{"code":"VAR","name":"VAR","group":"risk","type":"SQL","source":"ledger","sql":"INSERT INTO effects VALUES (''VAR'')","transaction":"one","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success"}],"dependencies":[["VAR","VALUE"],[0,1,1]],"sources":[{"name":"ledger","url":"sqlite:/tmp/procession-upgrade/target.db"}],"externals":[{"job_code":"VAR","group":"close","depends_on":"REPORT","batch":"same","when":"success","missing":"wait"}]}','ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','unknown',NULL,'2026-11-24T20:28:41.037+00:00',NULL,'2026-11-24T20:28:41.158+00:00',0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO job_batch VALUES(3,'202407','checks','monthly','FAILED','2024-07-31','{}','{"group":{"code":"checks","name":"checks","type":"monthly","notify_email":["checks@bank.example"]},"jobs":[{"code":"LIMITS","name":"LIMITS","group":"checks","type":"SCRIPT","transaction":"one","script":"echo limit exceeded; exit 3","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"is_active":true,"trigger_rule":"all_success"}],"dependencies":[],"sources":[]}',NULL,'unknown',NULL,'2026-11-24T20:28:41.037+00:00','2026-11-24T20:28:41.225+00:00','2026-11-24T20:28:41.225+00:00',0,0,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE job_queue (
    queue_id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_id INTEGER NOT NULL REFERENCES job_batch (batch_id),
    batch_no TEXT NOT NULL,
    job_code TEXT NOT NULL,
    status TEXT NOT NULL,
    try_count INTEGER NOT NULL DEFAULT 0,
    error_message TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    not_before TEXT,
    start_time TEXT,
    end_time TEXT,
    outputs TEXT, skip_kind TEXT, run_mode TEXT, priority INTEGER, run_no INTEGER NOT NULL DEFAULT 1, crash_count INTEGER NOT NULL DEFAULT 0, unresolved INTEGER NOT NULL DEFAULT 0, waits_on TEXT, is_taken INTEGER NOT NULL DEFAULT 1, hosted_by TEXT,
    CONSTRAINT uq_job_queue UNIQUE (batch_no, job_code)
);
INSERT INTO job_queue VALUES(1,1,'202407','LOAD_GL','SUCCESS',0,NULL,'2026-11-24T20:28:41.037+00:00','2026-11-24T20:28:41.192+00:00',1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7',NULL,'2026-11-24T20:28:41.169+00:00','2026-11-24T20:28:41.192+00:00','{"rows_affected":1}',NULL,NULL,NULL,1,0,0,NULL,1,NULL);
INSERT INTO job_queue VALUES(2,1,'202407','COUNT_GL','SUCCESS',0,NULL,'2026-11-24T20:28:41.037+00:00','2026-11-24T20:28:41.222+00:00',1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7',NULL,'2026-11-24T20:28:41.192+00:00','2026-11-24T20:28:41.222+00:00','{"values":{"rows":"12"},"rows_affected":0,"exit_code":0}',NULL,NULL,NULL,1,0,0,NULL,1,NULL);
INSERT INTO job_queue VALUES(3,1,'202407','POST_GL','RUNNING',0,NULL,'2026-11-24T20:28:41.037+00:00','2026-11-24T20:28:41.222+00:00',1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7',NULL,'2026-11-24T20:28:41.222+00:00',NULL,NULL,NULL,NULL,NULL,1,0,0,NULL,1,NULL);
INSERT INTO job_queue VALUES(4,1,'202407','FX_RATES','RETRY_WAIT',1,'statement 1 (line 1): error 1299: NOT NULL constraint failed: effects.job','2026-11-24T20:28:41.037+00:00','2026-11-24T20:28:41.209+00:00',1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:30:41.209+00:00','2026-11-24T20:28:41.192+00:00','2026-11-24T20:28:41.209+00:00',NULL,NULL,NULL,NULL,1,0,0,NULL,1,NULL);
INSERT INTO job_queue VALUES(5,1,'202407','REPORT','PENDING',0,NULL,'2026-11-24T20:28:41.037+00:00','2026-11-24T20:28:41.037+00:00',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,0,0,NULL,1,NULL);
INSERT INTO job_queue VALUES(6,2,'202407','VALUE','SUCCESS',0,NULL,'2026-11-24T20:28:41.037+00:00','2026-11-24T20:28:41.202+00:00',1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7',NULL,'2026-11-24T20:28:41.169+00:00','2026-11-24T20:28:41.202+00:00','{"rows_affected":1}',NULL,NULL,NULL,1,0,0,NULL,1,NULL);
INSERT INTO job_queue VALUES(7,2,'202407','VAR','PENDING',0,NULL,'2026-11-24T20:28:41.037+00:00','2026-11-24T20:28:41.037+00:00',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,0,0,NULL,1,NULL);
INSERT INTO job_queue VALUES(8,3,'202407','LIMITS','FAILED',1,'exit code 3','2026-11-24T20:28:41.037+00:00','2026-11-24T20:28:41.225+00:00',1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7',NULL,'2026-11-24T20:28:41.169+00:00','2026-11-24T20:28:41.225+00:00','{"rows_affected":0,"exit_code":3}',NULL,NULL,NULL,1,0,0,NULL,1,NULL);
CREATE TABLE job_execution_logs (
    log_id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL REFERENCES job_queue (queue_id),
    start_time TEXT,
    end_time TEXT,
    status TEXT NOT NULL,
    error_message TEXT,
    duration INTEGER,
    notify_status TEXT NOT NULL DEFAULT 'UNNOTIFIED',
    retry_count INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    log_time TEXT NOT NULL
);
INSERT INTO job_execution_logs VALUES(1,1,'2026-11-24T20:28:41.169+00:00',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.169+00:00');
INSERT INTO job_execution_logs VALUES(2,6,'2026-11-24T20:28:41.169+00:00',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.169+00:00');
INSERT INTO job_execution_logs VALUES(3,8,'2026-11-24T20:28:41.169+00:00',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.169+00:00');
INSERT INTO job_execution_logs VALUES(4,1,'2026-11-24T20:28:41.169+00:00','2026-11-24T20:28:41.192+00:00','SUCCESS',NULL,23,'UNNOTIFIED',0,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.192+00:00');
INSERT INTO job_execution_logs VALUES(5,2,'2026-11-24T20:28:41.192+00:00',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.192+00:00');
INSERT INTO job_execution_logs VALUES(6,4,'2026-11-24T20:28:41.192+00:00',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.192+00:00');
INSERT INTO job_execution_logs VALUES(7,6,'2026-11-24T20:28:41.169+00:00','2026-11-24T20:28:41.202+00:00','SUCCESS',NULL,33,'UNNOTIFIED',0,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.202+00:00');
INSERT INTO job_execution_logs VALUES(8,4,'2026-11-24T20:28:41.192+00:00','2026-11-24T20:28:41.209+00:00','RETRY_WAIT','statement 1 (line 1): error 1299: NOT NULL constraint failed: effects.job',17,'UNNOTIFIED',1,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.209+00:00');
INSERT INTO job_execution_logs VALUES(9,2,'2026-11-24T20:28:41.192+00:00','2026-11-24T20:28:41.222+00:00','SUCCESS',NULL,30,'UNNOTIFIED',0,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.222+00:00');
INSERT INTO job_execution_logs VALUES(10,3,'2026-11-24T20:28:41.222+00:00',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.222+00:00');
INSERT INTO job_execution_logs VALUES(11,8,'2026-11-24T20:28:41.169+00:00','2026-11-24T20:28:41.225+00:00','FAILED','exit code 3',56,'NOTIFIED',1,1,'ee6a0b7c-5de2-4ccb-8e46-08b1cb5e66a7','2026-11-24T20:28:41.225+00:00');
CREATE TABLE job_log_line (
    queue_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    line_no INTEGER NOT NULL,
    stream TEXT NOT NULL,
    line_text TEXT NOT NULL,
    log_time TEXT NOT NULL,
    PRIMARY KEY (queue_id, attempt, line_no)
);
INSERT INTO job_log_line VALUES(1,1,1,'system','connected to source ''ledger'' (sqlite)','2026-11-24T20:28:41.171+00:00');
INSERT INTO job_log_line VALUES(1,1,2,'system','statement 1 (line 1): 1 rows changed in 0 ms','2026-11-24T20:28:41.183+00:00');
INSERT INTO job_log_line VALUES(6,1,1,'system','connected to source ''ledger'' (sqlite)','2026-11-24T20:28:41.172+00:00');
INSERT INTO job_log_line VALUES(6,1,2,'system','statement 1 (line 1): 1 rows changed in 0 ms','2026-11-24T20:28:41.191+00:00');
INSERT INTO job_log_line VALUES(4,1,1,'system','connected to source ''ledger'' (sqlite, kept)','2026-11-24T20:28:41.199+00:00');
INSERT INTO job_log_line VALUES(4,1,2,'system','rolled back','2026-11-24T20:28:41.205+00:00');
INSERT INTO job_log_line VALUES(2,1,1,'system','started as process 722','2026-11-24T20:28:41.213+00:00');
INSERT INTO job_log_line VALUES(2,1,2,'stdout','counted','2026-11-24T20:28:41.214+00:00');
INSERT INTO job_log_line VALUES(2,1,3,'stdout','::output rows=12','2026-11-24T20:28:41.214+00:00');
INSERT INTO job_log_line VALUES(8,1,1,'system','started as process 721','2026-11-24T20:28:41.214+00:00');
INSERT INTO job_log_line VALUES(8,1,2,'stdout','limit exceeded','2026-11-24T20:28:41.214+00:00');
CREATE TABLE email_notifications (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    recipient_email TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    send_time TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    fail_reason TEXT,
    type TEXT NOT NULL,
    retry_count INTEGER NOT NULL DEFAULT 0,
    is_system INTEGER NOT NULL DEFAULT 0,
    queue_id INTEGER,
    batch_id INTEGER
, lang TEXT, letter TEXT, event_key TEXT, told TEXT NOT NULL DEFAULT 'now', next_at TEXT, claimed_by TEXT, digest_id INTEGER, group_code TEXT, job_code TEXT);
INSERT INTO email_notifications VALUES(1,'checks@bank.example','[Procession] LIMITS failed in batch 202407 (checks)',replace('Job LIMITS (LIMITS) failed.\n\nBatch: 202407 (checks)\nAttempt: 1\nEnded: 2026-11-24T20:28:41.225Z\nDuration: 56 ms\n\nError:\nexit code 3\n\nLook: procession batch show 202407 --group checks\nLog: procession logs 202407 LIMITS --group checks\n','\n',char(10)),'pending',NULL,'2026-11-24T20:28:41.225+00:00','2026-11-24T20:28:41.225+00:00',NULL,'failed',0,1,8,3,NULL,'{"event":"failed","subject":{"en":"LIMITS failed in batch 202407 (checks)","zh":"LIMITS 执行失败,批次 202407(checks)"},"headline":{"en":"Job LIMITS (LIMITS) failed.","zh":"作业 LIMITS(LIMITS)执行失败。"},"facts":[{"label":{"en":"Batch","zh":"批次"},"value":"202407 (checks)"},{"label":{"en":"Attempt","zh":"次数"},"value":"1"},{"label":{"en":"Ended","zh":"结束时间"},"value":"2026-11-24T20:28:41.225Z"},{"label":{"en":"Duration","zh":"耗时"},"value":"56 ms"}],"error":"exit code 3","steps":[{"label":{"en":"Look","zh":"查看"},"command":"procession batch show 202407 --group checks"},{"label":{"en":"Log","zh":"日志"},"command":"procession logs 202407 LIMITS --group checks"}],"topic":{"group":"checks","batch_no":"202407","job":"LIMITS","attempt":1}}',NULL,'now','2026-11-24T20:28:41.225+00:00',NULL,NULL,'checks','LIMITS');
CREATE TABLE job_external_dependency (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    group_code TEXT NOT NULL,
    depends_on TEXT,
    batch_expr TEXT NOT NULL,
    edge_condition TEXT,
    missing TEXT NOT NULL,
    wait_sec INTEGER,
    dependency_order INTEGER NOT NULL DEFAULT 0
);
INSERT INTO job_external_dependency VALUES(1,'VAR','close','REPORT','same',NULL,'wait',NULL,0);
CREATE TABLE resource_pool (
    pool_id INTEGER PRIMARY KEY AUTOINCREMENT,
    pool_name TEXT NOT NULL,
    slots INTEGER NOT NULL,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_resource_pool UNIQUE (pool_name)
);
CREATE TABLE job_owner (
    owner_id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner_name TEXT NOT NULL,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_job_owner UNIQUE (owner_name)
);
CREATE TABLE http_host (
    host_id INTEGER PRIMARY KEY AUTOINCREMENT,
    host_name TEXT NOT NULL,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_http_host UNIQUE (host_name)
);
CREATE TABLE secret_source (
    secret_id INTEGER PRIMARY KEY AUTOINCREMENT,
    secret_name TEXT NOT NULL,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_secret_source UNIQUE (secret_name)
);
CREATE TABLE global_param (
    param_id INTEGER PRIMARY KEY AUTOINCREMENT,
    param_name TEXT NOT NULL,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_global_param UNIQUE (param_name)
);
CREATE TABLE sealed_secret (
    secret_name TEXT NOT NULL PRIMARY KEY,
    sealed TEXT NOT NULL,
    sealed_by TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL
);
CREATE TABLE definition_version (
    version_id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_code TEXT NOT NULL,
    version_no INTEGER NOT NULL,
    author TEXT NOT NULL,
    remark TEXT,
    definition TEXT NOT NULL,
    create_time TEXT NOT NULL,
    CONSTRAINT uq_definition_version UNIQUE (group_code, version_no)
);
INSERT INTO definition_version VALUES(1,'close',1,'unknown',NULL,'{"sources":[{"name":"ledger","url":"sqlite:/tmp/procession-upgrade/target.db"}],"groups":[{"code":"close","name":"close","type":"monthly","notify_email":["close@bank.example"]}],"jobs":[{"code":"LOAD_GL","name":"LOAD_GL","group":"close","type":"SQL","source":"ledger","sql":"INSERT INTO effects VALUES (''LOAD_GL'')","transaction":"one","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success"},{"code":"COUNT_GL","name":"COUNT_GL","group":"close","type":"SCRIPT","transaction":"one","script":"echo counted; echo ::output rows=12","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"is_active":true,"trigger_rule":"all_success"},{"code":"POST_GL","name":"POST_GL","group":"close","type":"SQL","source":"ledger","sql":"INSERT INTO effects SELECT ''POST_GL'' FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < (SELECT work FROM switches)) SELECT MAX(n) FROM c)","transaction":"one","timeout_sec":3600,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success"},{"code":"FX_RATES","name":"FX_RATES","group":"close","type":"SQL","source":"ledger","sql":"INSERT INTO effects SELECT job FROM switches","transaction":"one","timeout_sec":1800,"retry_count":3,"retry_delay_sec":120,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success"},{"code":"REPORT","name":"REPORT","group":"close","type":"SQL","source":"ledger","sql":"INSERT INTO effects VALUES (''REPORT'')","transaction":"one","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success","if":"COUNT_GL.rows == 12"}],"dependencies":[["COUNT_GL","LOAD_GL","POST_GL","FX_RATES","REPORT"],[0,1,1],[2,1,0],[3,1,1],[4,1,2,3]]}','2026-11-24T20:28:40.955+00:00');
INSERT INTO definition_version VALUES(2,'risk',1,'unknown',NULL,'{"sources":[{"name":"ledger","url":"sqlite:/tmp/procession-upgrade/target.db"}],"groups":[{"code":"risk","name":"risk","type":"monthly","notify_email":["risk@bank.example"]}],"jobs":[{"code":"VALUE","name":"VALUE","group":"risk","type":"SQL","source":"ledger","sql":"INSERT INTO effects VALUES (''VALUE'')","transaction":"one","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success"},{"code":"VAR","name":"VAR","group":"risk","type":"SQL","source":"ledger","sql":"INSERT INTO effects VALUES (''VAR'')","transaction":"one","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"tx":"ledger","is_active":true,"trigger_rule":"all_success"}],"dependencies":[["VAR","VALUE"],[0,1,1]],"externals":[{"job_code":"VAR","group":"close","depends_on":"REPORT","batch":"same","when":"success","missing":"wait"}]}','2026-11-24T20:28:40.955+00:00');
INSERT INTO definition_version VALUES(3,'checks',1,'unknown',NULL,'{"sources":[],"groups":[{"code":"checks","name":"checks","type":"monthly","notify_email":["checks@bank.example"]}],"jobs":[{"code":"LIMITS","name":"LIMITS","group":"checks","type":"SCRIPT","transaction":"one","script":"echo limit exceeded; exit 3","timeout_sec":1800,"retry_count":0,"retry_delay_sec":0,"priority":0,"idempotent":false,"is_active":true,"trigger_rule":"all_success"}],"dependencies":[]}','2026-11-24T20:28:40.955+00:00');
CREATE TABLE audit_log (
    audit_id INTEGER PRIMARY KEY AUTOINCREMENT,
    actor TEXT NOT NULL,
    host TEXT NOT NULL,
    action TEXT NOT NULL,
    group_code TEXT,
    batch_id INTEGER,
    batch_no TEXT,
    job_code TEXT,
    detail TEXT,
    reason TEXT,
    create_time TEXT NOT NULL
);
INSERT INTO audit_log VALUES(1,'unknown','etl-host','apply','checks',NULL,NULL,NULL,'{"version":1}',NULL,'2026-11-24T20:28:40.955+00:00');
INSERT INTO audit_log VALUES(2,'unknown','etl-host','apply','close',NULL,NULL,NULL,'{"version":1}',NULL,'2026-11-24T20:28:40.955+00:00');
INSERT INTO audit_log VALUES(3,'unknown','etl-host','apply','risk',NULL,NULL,NULL,'{"version":1}',NULL,'2026-11-24T20:28:40.955+00:00');
INSERT INTO audit_log VALUES(4,'unknown','etl-host','schedule add','close',NULL,NULL,NULL,'{"after":{"batch_no":"month(-1)","code":"CLOSE_MONTHLY","cron":"0 0 2 1 * ?","group":"close","misfire":"skip","time_zone":"UTC"},"schedule":"CLOSE_MONTHLY"}',NULL,'2026-11-24T20:28:40.955+00:00');
CREATE TABLE backfill (
    backfill_id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_code TEXT NOT NULL,
    range_text TEXT NOT NULL,
    status TEXT NOT NULL,
    options TEXT NOT NULL,
    owner TEXT,
    started_by TEXT NOT NULL,
    reason TEXT,
    create_time TEXT NOT NULL,
    end_time TEXT,
    update_time TEXT NOT NULL
);
CREATE TABLE backfill_batch (
    backfill_id INTEGER NOT NULL,
    place INTEGER NOT NULL,
    batch_no TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT,
    update_time TEXT NOT NULL,
    PRIMARY KEY (backfill_id, place),
    CONSTRAINT uq_backfill_batch UNIQUE (backfill_id, batch_no)
);
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
CREATE TABLE tx_breach (
    job_code TEXT NOT NULL PRIMARY KEY,
    batch_no TEXT NOT NULL,
    queue_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    said TEXT NOT NULL,
    create_time TEXT NOT NULL
);
CREATE TABLE job_trigger (
    trigger_id INTEGER PRIMARY KEY AUTOINCREMENT,
    trigger_code TEXT NOT NULL,
    trigger_name TEXT NOT NULL,
    group_code TEXT,
    schedule_type TEXT NOT NULL,
    schedule_conf TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    handler TEXT NOT NULL,
    trigger_status TEXT NOT NULL,
    reason TEXT,
    origin TEXT NOT NULL,
    revision INTEGER NOT NULL DEFAULT 1,
    body TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_job_trigger_code UNIQUE (trigger_code)
);
INSERT INTO job_trigger VALUES(1,'CLOSE_MONTHLY','CLOSE_MONTHLY','close','cron','0 0 2 1 * ?','UTC','queueDispatcherHandler','ENABLED',NULL,'file',1,'{"code":"CLOSE_MONTHLY","group":"close","batch_no":"month(-1)","cron":"0 0 2 1 * ?","time_zone":"UTC","misfire":"skip"}','2026-11-24T20:28:40.955+00:00','2026-11-24T20:28:40.955+00:00');
CREATE TABLE job_trigger_time (
    trigger_id INTEGER NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    next_time TEXT,
    last_time TEXT,
    update_time TEXT NOT NULL
);
INSERT INTO job_trigger_time VALUES(1,1,'2026-12-01T02:00:00+00:00',NULL,'2026-11-24T20:28:40.955+00:00');
CREATE TABLE job_firing (
    firing_id INTEGER PRIMARY KEY AUTOINCREMENT,
    trigger_id INTEGER NOT NULL,
    planned_at TEXT NOT NULL,
    nominal_date TEXT,
    source TEXT NOT NULL,
    handler TEXT NOT NULL,
    status TEXT NOT NULL,
    fire_at TEXT NOT NULL,
    owner TEXT,
    attempt INTEGER NOT NULL DEFAULT 0,
    params TEXT,
    parent_batch_id INTEGER,
    missed_until TEXT,
    batch_no TEXT,
    reason TEXT,
    fired_at TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_job_firing UNIQUE (trigger_id, planned_at)
);
CREATE TABLE job_lock (
    lock_name TEXT NOT NULL PRIMARY KEY,
    owner TEXT,
    epoch INTEGER NOT NULL DEFAULT 0,
    update_time TEXT
);
INSERT INTO job_lock VALUES('schedule_lock',NULL,0,NULL);
INSERT INTO job_lock VALUES('calendar_lock',NULL,0,NULL);
INSERT INTO job_lock VALUES('retention_lock',NULL,0,NULL);
INSERT INTO job_lock VALUES('xxl_run_lock',NULL,0,NULL);
INSERT INTO job_lock VALUES('executor_lock',NULL,0,NULL);
CREATE TABLE calendar (
    calendar_code TEXT NOT NULL PRIMARY KEY,
    calendar_name TEXT NOT NULL,
    weekend TEXT NOT NULL,
    years TEXT NOT NULL,
    combine_how TEXT,
    members TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL
);
CREATE TABLE calendar_day (
    calendar_code TEXT NOT NULL REFERENCES calendar (calendar_code),
    calendar_date TEXT NOT NULL,
    kind TEXT NOT NULL,
    label TEXT,
    list_year INTEGER,
    PRIMARY KEY (calendar_code, calendar_date)
);
CREATE TABLE job_report (
    queue_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    batch_id INTEGER NOT NULL,
    owner TEXT NOT NULL,
    report TEXT NOT NULL,
    create_time TEXT NOT NULL,
    PRIMARY KEY (queue_id, attempt)
);
CREATE TABLE event_key (
    event_name TEXT NOT NULL,
    event_key TEXT NOT NULL,
    create_time TEXT NOT NULL,
    PRIMARY KEY (event_name, event_key)
);
CREATE TABLE notify_snooze (
    snooze_id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_code TEXT NOT NULL,
    job_code TEXT,
    type TEXT,
    until_time TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    create_time TEXT NOT NULL
);
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
CREATE TABLE login_attempt (
    attempt_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_name TEXT NOT NULL,
    address TEXT NOT NULL,
    create_time TEXT NOT NULL
);
CREATE TABLE oidc_login (
    login_id INTEGER PRIMARY KEY AUTOINCREMENT,
    secret_hash TEXT NOT NULL,
    create_time TEXT NOT NULL,
    CONSTRAINT uq_oidc_login UNIQUE (secret_hash)
);
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
CREATE TABLE xxl_run (
    run_id INTEGER PRIMARY KEY AUTOINCREMENT,
    app_name TEXT NOT NULL,
    log_id INTEGER NOT NULL,
    log_date_time INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    handler TEXT NOT NULL,
    params TEXT NOT NULL,
    admin TEXT NOT NULL,
    block_strategy TEXT NOT NULL,
    timeout_sec INTEGER,
    shard_index INTEGER NOT NULL,
    shard_total INTEGER NOT NULL,
    status TEXT NOT NULL,
    stopping TEXT,
    batch_ids TEXT,
    deadline TEXT,
    handle_code INTEGER,
    handle_msg TEXT,
    callback TEXT NOT NULL,
    callback_at TEXT,
    callback_tries INTEGER NOT NULL,
    callback_error TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    end_time TEXT,
    CONSTRAINT uq_xxl_run_log UNIQUE (app_name, log_id, log_date_time)
);
CREATE TABLE executor_group (
    group_id INTEGER PRIMARY KEY AUTOINCREMENT,
    app_name TEXT NOT NULL,
    title TEXT NOT NULL,
    addresses TEXT,
    allows_glue INTEGER NOT NULL,
    token_sealed TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_executor_group_app UNIQUE (app_name)
);
CREATE TABLE executor_registry (
    registry_id INTEGER PRIMARY KEY AUTOINCREMENT,
    app_name TEXT NOT NULL,
    address TEXT NOT NULL,
    shows_app_name INTEGER NOT NULL,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    CONSTRAINT uq_executor_registry_address UNIQUE (app_name, address)
);
CREATE TABLE executor_job (
    job_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_code TEXT NOT NULL,
    rounds INTEGER NOT NULL,
    CONSTRAINT uq_executor_job_code UNIQUE (job_code)
);
CREATE TABLE executor_use (
    use_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id INTEGER NOT NULL,
    address TEXT NOT NULL,
    uses INTEGER NOT NULL,
    since_time TEXT NOT NULL,
    used_time TEXT NOT NULL,
    CONSTRAINT uq_executor_use_address UNIQUE (job_id, address)
);
CREATE TABLE executor_run (
    log_id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    run_no INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    batch_id INTEGER NOT NULL,
    job_code TEXT NOT NULL,
    job_id INTEGER NOT NULL,
    app_name TEXT NOT NULL,
    address TEXT,
    handler TEXT,
    glue_type TEXT NOT NULL,
    params TEXT NOT NULL,
    block_strategy TEXT NOT NULL,
    shard_index INTEGER NOT NULL,
    shard_total INTEGER NOT NULL,
    status TEXT NOT NULL,
    stopping TEXT,
    node_id TEXT,
    trigger_time TEXT,
    trigger_code INTEGER,
    trigger_msg TEXT,
    busy_time TEXT,
    idle_time TEXT,
    handle_code INTEGER,
    handle_msg TEXT,
    result TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL,
    end_time TEXT,
    CONSTRAINT uq_executor_run_try UNIQUE (queue_id, attempt, shard_index)
);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('data_source',1);
INSERT INTO sqlite_sequence VALUES('job_group',3);
INSERT INTO sqlite_sequence VALUES('job_def',8);
INSERT INTO sqlite_sequence VALUES('job_dependency',6);
INSERT INTO sqlite_sequence VALUES('job_external_dependency',1);
INSERT INTO sqlite_sequence VALUES('definition_version',3);
INSERT INTO sqlite_sequence VALUES('audit_log',4);
INSERT INTO sqlite_sequence VALUES('job_trigger',1);
INSERT INTO sqlite_sequence VALUES('job_batch',3);
INSERT INTO sqlite_sequence VALUES('job_queue',8);
INSERT INTO sqlite_sequence VALUES('job_execution_logs',11);
INSERT INTO sqlite_sequence VALUES('email_notifications',1);
CREATE INDEX ix_job_def_group ON job_def (group_code);
CREATE INDEX ix_job_batch_status ON job_batch (status, owner);
CREATE INDEX ix_job_execution_logs_queue ON job_execution_logs (queue_id, log_id);
CREATE INDEX ix_email_recipient ON email_notifications (recipient_email);
CREATE INDEX ix_email_status ON email_notifications (status);
CREATE INDEX ix_email_send_time ON email_notifications (send_time);
CREATE INDEX ix_job_external_job ON job_external_dependency (job_code);
CREATE INDEX ix_audit_log_batch ON audit_log (batch_id, audit_id);
CREATE INDEX ix_audit_log_time ON audit_log (create_time);
CREATE INDEX ix_job_batch_group ON job_batch (group_code, batch_no);
CREATE INDEX ix_job_trigger_type ON job_trigger (schedule_type, trigger_status);
CREATE INDEX ix_job_trigger_time_next ON job_trigger_time (next_time, trigger_id);
CREATE INDEX ix_job_firing_due ON job_firing (status, fire_at);
CREATE INDEX ix_job_firing_open ON job_firing (trigger_id, status, planned_at);
CREATE INDEX ix_job_firing_parent ON job_firing (parent_batch_id, trigger_id);
CREATE INDEX ix_job_batch_firing ON job_batch (firing_id);
CREATE INDEX ix_job_batch_end ON job_batch (group_code, end_time);
CREATE INDEX ix_cluster_node_lease ON cluster_node (lease_until);
CREATE INDEX ix_job_report_batch ON job_report (batch_id);
CREATE INDEX ix_event_key_time ON event_key (create_time);
CREATE INDEX ix_job_batch_remove ON job_batch (remove_time);
CREATE INDEX ix_job_batch_newest ON job_batch (group_code, batch_id);
CREATE INDEX ix_email_batch ON email_notifications (batch_id, status);
CREATE INDEX ix_procession_ledger_batch ON procession_ledger (batch_no);
CREATE INDEX ix_job_queue_jobs ON job_queue (batch_id, queue_id);
CREATE INDEX ix_email_due ON email_notifications (status, next_at);
CREATE UNIQUE INDEX ux_email_event ON email_notifications (event_key, recipient_email);
CREATE INDEX ix_notify_snooze_until ON notify_snooze (until_time);
CREATE INDEX ix_user_session_user ON user_session (user_id);
CREATE INDEX ix_user_session_end ON user_session (end_time);
CREATE INDEX ix_api_token_user ON api_token (user_id);
CREATE INDEX ix_login_attempt_user ON login_attempt (user_name, create_time);
CREATE INDEX ix_login_attempt_address ON login_attempt (address, create_time);
CREATE INDEX ix_login_attempt_time ON login_attempt (create_time);
CREATE INDEX ix_oidc_login_time ON oidc_login (create_time);
CREATE INDEX ix_idempotency_key_time ON idempotency_key (create_time);
CREATE INDEX ix_audit_log_actor ON audit_log (actor, audit_id);
CREATE INDEX ix_audit_log_action ON audit_log (action, audit_id);
CREATE INDEX ix_audit_log_group ON audit_log (group_code, audit_id);
CREATE INDEX ix_audit_log_number ON audit_log (batch_no, audit_id);
CREATE INDEX ix_audit_log_job ON audit_log (job_code, audit_id);
CREATE INDEX ix_job_batch_time ON job_batch (create_time, group_code, status);
CREATE INDEX ix_xxl_run_job ON xxl_run (app_name, status, job_id);
CREATE INDEX ix_xxl_run_callback ON xxl_run (app_name, callback, callback_at);
CREATE INDEX ix_executor_group_token ON executor_group (token_hash);
CREATE INDEX ix_executor_registry_time ON executor_registry (update_time);
CREATE INDEX ix_executor_run_job ON executor_run (job_id, status);
CREATE INDEX ix_executor_run_node ON executor_run (node_id, status);
CREATE INDEX ix_executor_run_batch ON executor_run (batch_id);
CREATE INDEX ix_executor_run_app ON executor_run (app_name);
CREATE INDEX ix_executor_run_end ON executor_run (end_time);
CREATE INDEX ix_job_queue_hosted ON job_queue (hosted_by) WHERE hosted_by IS NOT NULL;
COMMIT;
