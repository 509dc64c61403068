
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `_sqlx_migrations` (
  `version` bigint(20) NOT NULL,
  `description` text NOT NULL,
  `installed_on` timestamp NOT NULL DEFAULT current_timestamp(),
  `success` tinyint(1) NOT NULL,
  `checksum` blob NOT NULL,
  `execution_time` bigint(20) NOT NULL,
  PRIMARY KEY (`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `_sqlx_migrations` DISABLE KEYS */;
INSERT INTO `_sqlx_migrations` VALUES
(1,'first tables','2026-11-24 20:28:42',1,0x355B2554FF2FA3B78D9B8ADD82BD40988B9EDA59EC78F5A23EE24312871C1538C84C38F2AA000DF538711697036CA87C,806916400),
(2,'rules and actions','2026-11-24 20:28:43',1,0xBD45496969FF5D2170DDD5FACB129F7A3357844B7EBDEA1C017048565B7B013F7FBFEAB7E8406748DD7B8DD524B1332A,1142174687),
(3,'trust','2026-11-24 20:28:44',1,0x7E44D34BB36BEA74AB5C09C1EEBD8180962A5118FE90792990B7115AB9EE4AD875FD99B29B8EC815791CFC3618BC4B43,196017408),
(4,'triggers','2026-11-24 20:28:44',1,0x3F655667A33B3AE751AC69B84AD767D9AB34775F0B68E87E0A6EB7355DB16B467EFB46C8F7846B3F89869E167CA48969,596188739),
(5,'calendar','2026-11-24 20:28:45',1,0x9596C15814F0A9A372BF8E4D67F5BF9F91145FDC579D42B074EAB457BF9D54452E66953B1D0BA38F6AC3CA76F8F3E3D8,56079055),
(6,'cluster','2026-11-24 20:28:45',1,0x22079808D591C1748DB2333069F0196697E195C351AF841135AAD2E38320CBA143C4680E9E42B5F637C20F7ECFD5AF7F,604693150),
(7,'event key','2026-11-24 20:28:45',1,0x033B2F836182119EE44678159A6F33BD1712663CDCCC75B48E924114CA55D2911B06249EF7DC25295578A9D1D9DC109C,76973495),
(8,'retention','2026-11-24 20:28:46',1,0x3C6678B54AEBE508D10FA9B1F5478297EFAF5A3C944ABA58A1D44502A672E6B1081A0BE26A6EA2983283BCBE9A3BC216,279282642),
(9,'indexes','2026-11-24 20:28:46',1,0x3E836EB4B6FE3CADC141D5F3AE1F48A72DE7B5A5C762AB01E2DDF852F00AED070F6D5487EBEA01D0A99BA3D033BDBC8A,151913184),
(10,'outbox','2026-11-24 20:28:46',1,0xBA8752A801CE472E36A2023AF1D9D29565A184768A10153F92C203283D083DD09E5DD62D04B809F991B5FD84614C0FBC,475466110),
(11,'users','2026-11-24 20:28:46',1,0x746E6C78631125F2449333D976E4FECE2585030107916CCE354E77939552D762D3B5ED3412CAECFB3107D023E1972D4E,504733294),
(12,'audit','2026-11-24 20:28:47',1,0xD222EB28A8EB763E7A889DDA3505BDD51FF3452037CD5EF0151318A6CC385C61DB55DB82BC24D4C4638C565A1304CB03,233595856),
(13,'batches by time','2026-11-24 20:28:47',1,0xDB1C873B6520A9D573EC6063AFBADDC9C7437EED99417E7733FC3685154713EF80E47A038ED25C93AF215A92EABCFEBD,45218237),
(14,'xxl run','2026-11-24 20:28:47',1,0x51E073B47F8FA1788209AE77697A9C49D42DC48B71341D64AD749BA7F7299A99B660F9D748D4CF7375EC822378073A78,134448652),
(15,'executor','2026-11-24 20:28:47',1,0xE4F3BAA5B1EA53B6B8FB59AFBCF0885C738F2CC5C2C48C4DE65D7CD1ECA528D55FCF02699D1A500D944EFA167410F6A1,420012908),
(16,'hosted by','2026-11-24 20:28:48',1,0xC15E2503046D8F2C5780C26FEC1A14BC941A2C6E54508698CB610D038BAEBB8F0EF24B3ACC004DA58184876ED716623C,130901719);
/*!40000 ALTER TABLE `_sqlx_migrations` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `api_token` (
  `token_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `user_id` bigint(20) NOT NULL,
  `token_name` varchar(100) NOT NULL,
  `secret_hash` varchar(64) NOT NULL,
  `permissions` varchar(200) NOT NULL,
  `groups_only` text DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `end_time` datetime(3) NOT NULL,
  `used_time` datetime(3) DEFAULT NULL,
  PRIMARY KEY (`token_id`),
  UNIQUE KEY `uq_api_token` (`secret_hash`),
  KEY `ix_api_token_user` (`user_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `api_token` DISABLE KEYS */;
/*!40000 ALTER TABLE `api_token` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `app_user` (
  `user_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `user_name` varchar(64) NOT NULL,
  `display_name` varchar(200) NOT NULL,
  `lang` varchar(2) DEFAULT NULL,
  `password_hash` varchar(255) DEFAULT NULL,
  `must_change` tinyint(4) NOT NULL,
  `password_until` datetime(3) DEFAULT NULL,
  `is_active` tinyint(4) NOT NULL,
  `oidc_issuer` varchar(255) DEFAULT NULL,
  `oidc_subject` varchar(255) DEFAULT NULL,
  `last_login` datetime(3) DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`user_id`),
  UNIQUE KEY `uq_app_user_name` (`user_name`),
  UNIQUE KEY `uq_app_user_oidc` (`oidc_issuer`,`oidc_subject`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `app_user` DISABLE KEYS */;
/*!40000 ALTER TABLE `app_user` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `audit_log` (
  `audit_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `actor` varchar(255) NOT NULL,
  `host` varchar(255) NOT NULL,
  `action` varchar(40) NOT NULL,
  `group_code` varchar(64) DEFAULT NULL,
  `batch_id` bigint(20) DEFAULT NULL,
  `batch_no` varchar(64) DEFAULT NULL,
  `job_code` varchar(100) DEFAULT NULL,
  `detail` longtext DEFAULT NULL,
  `reason` text DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  PRIMARY KEY (`audit_id`),
  KEY `ix_audit_log_batch` (`batch_id`,`audit_id`),
  KEY `ix_audit_log_time` (`create_time`),
  KEY `ix_audit_log_actor` (`actor`,`audit_id`),
  KEY `ix_audit_log_action` (`action`,`audit_id`),
  KEY `ix_audit_log_group` (`group_code`,`audit_id`),
  KEY `ix_audit_log_number` (`batch_no`,`audit_id`),
  KEY `ix_audit_log_job` (`job_code`,`audit_id`)
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `audit_log` DISABLE KEYS */;
INSERT INTO `audit_log` VALUES
(1,'unknown','etl-host','apply','checks',NULL,NULL,NULL,'{\"version\":1}',NULL,'2026-11-24 20:28:48.762'),
(2,'unknown','etl-host','apply','close',NULL,NULL,NULL,'{\"version\":1}',NULL,'2026-11-24 20:28:48.762'),
(3,'unknown','etl-host','apply','risk',NULL,NULL,NULL,'{\"version\":1}',NULL,'2026-11-24 20:28:48.762'),
(4,'unknown','etl-host','schedule add','close',NULL,NULL,NULL,'{\"after\":{\"batch_no\":\"month(-1)\",\"code\":\"CLOSE_MONTHLY\",\"cron\":\"0 0 2 1 * ?\",\"group\":\"close\",\"misfire\":\"skip\",\"time_zone\":\"UTC\"},\"schedule\":\"CLOSE_MONTHLY\"}',NULL,'2026-11-24 20:28:48.762');
/*!40000 ALTER TABLE `audit_log` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `backfill` (
  `backfill_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `group_code` varchar(64) NOT NULL,
  `range_text` text NOT NULL,
  `status` varchar(20) NOT NULL,
  `options` longtext NOT NULL,
  `owner` varchar(64) DEFAULT NULL,
  `started_by` varchar(255) NOT NULL,
  `reason` text DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `end_time` datetime(3) DEFAULT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`backfill_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `backfill` DISABLE KEYS */;
/*!40000 ALTER TABLE `backfill` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `backfill_batch` (
  `backfill_id` bigint(20) NOT NULL,
  `place` int(11) NOT NULL,
  `batch_no` varchar(64) NOT NULL,
  `status` varchar(20) NOT NULL,
  `message` text DEFAULT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`backfill_id`,`place`),
  UNIQUE KEY `uq_backfill_batch` (`backfill_id`,`batch_no`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `backfill_batch` DISABLE KEYS */;
/*!40000 ALTER TABLE `backfill_batch` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `calendar` (
  `calendar_code` varchar(50) NOT NULL,
  `calendar_name` varchar(255) NOT NULL,
  `weekend` varchar(50) NOT NULL,
  `years` text NOT NULL,
  `combine_how` varchar(10) DEFAULT NULL,
  `members` text DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`calendar_code`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `calendar` DISABLE KEYS */;
/*!40000 ALTER TABLE `calendar` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `calendar_day` (
  `calendar_code` varchar(50) NOT NULL,
  `calendar_date` varchar(10) NOT NULL,
  `kind` varchar(4) NOT NULL,
  `label` text DEFAULT NULL,
  `list_year` int(11) DEFAULT NULL,
  PRIMARY KEY (`calendar_code`,`calendar_date`),
  CONSTRAINT `calendar_day_ibfk_1` FOREIGN KEY (`calendar_code`) REFERENCES `calendar` (`calendar_code`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `calendar_day` DISABLE KEYS */;
/*!40000 ALTER TABLE `calendar_day` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `cluster_node` (
  `node_id` varchar(64) NOT NULL,
  `host` varchar(255) NOT NULL,
  `pid` bigint(20) NOT NULL,
  `version` varchar(64) NOT NULL,
  `started_at` datetime(3) NOT NULL,
  `heartbeat_at` datetime(3) NOT NULL,
  `lease_until` datetime(3) NOT NULL,
  `node_name` varchar(255) NOT NULL DEFAULT '',
  `incarnation` int(11) NOT NULL DEFAULT 1,
  `roles` varchar(64) NOT NULL DEFAULT '',
  `labels` text DEFAULT NULL,
  `max_parallel` int(11) NOT NULL DEFAULT 0,
  `running` int(11) NOT NULL DEFAULT 0,
  `counted_at` datetime(3) DEFAULT NULL,
  `is_draining` tinyint(4) NOT NULL DEFAULT 0,
  `address` varchar(255) DEFAULT NULL,
  `skew_ms` bigint(20) NOT NULL DEFAULT 0,
  PRIMARY KEY (`node_id`),
  KEY `ix_cluster_node_lease` (`lease_until`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `cluster_node` DISABLE KEYS */;
INSERT INTO `cluster_node` VALUES
('69be9152-954e-4328-84cb-c2a8a8c0b217','etl-host',946,'0.1.0','2026-11-24 20:28:48.947','2026-11-24 20:28:48.947','2026-11-24 20:29:03.947','etl-old',1,'scheduler,worker','[]',8,0,NULL,0,NULL,0);
/*!40000 ALTER TABLE `cluster_node` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `data_source` (
  `source_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `source_name` varchar(64) NOT NULL,
  `url` text NOT NULL,
  `password_env` varchar(255) DEFAULT NULL,
  `password_file` text DEFAULT NULL,
  `max_parallel` int(11) DEFAULT NULL,
  `procedures` longtext DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`source_id`),
  UNIQUE KEY `uq_data_source_name` (`source_name`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `data_source` DISABLE KEYS */;
INSERT INTO `data_source` VALUES
(1,'ledger','mysql://root@127.0.0.1:3306/procession_upgrade',NULL,NULL,NULL,'{}','2026-11-24 20:28:48.762','2026-11-24 20:28:48.762');
/*!40000 ALTER TABLE `data_source` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `definition_version` (
  `version_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `group_code` varchar(64) NOT NULL,
  `version_no` int(11) NOT NULL,
  `author` varchar(255) NOT NULL,
  `remark` text DEFAULT NULL,
  `definition` longtext NOT NULL,
  `create_time` datetime(3) NOT NULL,
  PRIMARY KEY (`version_id`),
  UNIQUE KEY `uq_definition_version` (`group_code`,`version_no`)
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `definition_version` DISABLE KEYS */;
INSERT INTO `definition_version` VALUES
(1,'close',1,'unknown',NULL,'{\"sources\":[{\"name\":\"ledger\",\"url\":\"mysql://root@127.0.0.1:3306/procession_upgrade\"}],\"groups\":[{\"code\":\"close\",\"name\":\"close\",\"type\":\"monthly\",\"notify_email\":[\"close@bank.example\"]}],\"jobs\":[{\"code\":\"LOAD_GL\",\"name\":\"LOAD_GL\",\"group\":\"close\",\"type\":\"SQL\",\"source\":\"ledger\",\"sql\":\"INSERT INTO effects VALUES (\'LOAD_GL\')\",\"transaction\":\"one\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\"},{\"code\":\"COUNT_GL\",\"name\":\"COUNT_GL\",\"group\":\"close\",\"type\":\"SCRIPT\",\"transaction\":\"one\",\"script\":\"echo counted; echo ::output rows=12\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"is_active\":true,\"trigger_rule\":\"all_success\"},{\"code\":\"POST_GL\",\"name\":\"POST_GL\",\"group\":\"close\",\"type\":\"PROC\",\"source\":\"ledger\",\"proc_name\":\"post_gl\",\"transaction\":\"one\",\"params\":[{\"name\":\"p_batch_no\",\"mode\":\"in\",\"type\":\"text\",\"value\":\"${batch_no}\"}],\"timeout_sec\":3600,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\"},{\"code\":\"FX_RATES\",\"name\":\"FX_RATES\",\"group\":\"close\",\"type\":\"SQL\",\"source\":\"ledger\",\"sql\":\"INSERT INTO effects SELECT job FROM switches\",\"transaction\":\"one\",\"timeout_sec\":1800,\"retry_count\":3,\"retry_delay_sec\":120,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\"},{\"code\":\"REPORT\",\"name\":\"REPORT\",\"group\":\"close\",\"type\":\"SQL\",\"source\":\"ledger\",\"sql\":\"INSERT INTO effects VALUES (\'REPORT\')\",\"transaction\":\"one\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\",\"if\":\"COUNT_GL.rows == 12\"}],\"dependencies\":[[\"COUNT_GL\",\"LOAD_GL\",\"POST_GL\",\"FX_RATES\",\"REPORT\"],[0,1,1],[2,1,0],[3,1,1],[4,1,2,3]]}','2026-11-24 20:28:48.762'),
(2,'risk',1,'unknown',NULL,'{\"sources\":[{\"name\":\"ledger\",\"url\":\"mysql://root@127.0.0.1:3306/procession_upgrade\"}],\"groups\":[{\"code\":\"risk\",\"name\":\"risk\",\"type\":\"monthly\",\"notify_email\":[\"risk@bank.example\"]}],\"jobs\":[{\"code\":\"VALUE\",\"name\":\"VALUE\",\"group\":\"risk\",\"type\":\"SQL\",\"source\":\"ledger\",\"sql\":\"INSERT INTO effects VALUES (\'VALUE\')\",\"transaction\":\"one\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\"},{\"code\":\"VAR\",\"name\":\"VAR\",\"group\":\"risk\",\"type\":\"SQL\",\"source\":\"ledger\",\"sql\":\"INSERT INTO effects VALUES (\'VAR\')\",\"transaction\":\"one\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\"}],\"dependencies\":[[\"VAR\",\"VALUE\"],[0,1,1]],\"externals\":[{\"job_code\":\"VAR\",\"group\":\"close\",\"depends_on\":\"REPORT\",\"batch\":\"same\",\"when\":\"success\",\"missing\":\"wait\"}]}','2026-11-24 20:28:48.762'),
(3,'checks',1,'unknown',NULL,'{\"sources\":[],\"groups\":[{\"code\":\"checks\",\"name\":\"checks\",\"type\":\"monthly\",\"notify_email\":[\"checks@bank.example\"]}],\"jobs\":[{\"code\":\"LIMITS\",\"name\":\"LIMITS\",\"group\":\"checks\",\"type\":\"SCRIPT\",\"transaction\":\"one\",\"script\":\"echo limit exceeded; exit 3\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"is_active\":true,\"trigger_rule\":\"all_success\"}],\"dependencies\":[]}','2026-11-24 20:28:48.762');
/*!40000 ALTER TABLE `definition_version` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `effects` (
  `job` varchar(64) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `effects` DISABLE KEYS */;
INSERT INTO `effects` VALUES
('LOAD_GL'),
('VALUE');
/*!40000 ALTER TABLE `effects` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `email_notifications` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `recipient_email` varchar(255) NOT NULL,
  `subject` varchar(255) NOT NULL,
  `body` text NOT NULL,
  `status` varchar(10) NOT NULL DEFAULT 'pending',
  `send_time` datetime(3) DEFAULT NULL,
  `created_at` datetime(3) NOT NULL,
  `updated_at` datetime(3) NOT NULL,
  `fail_reason` text DEFAULT NULL,
  `type` varchar(20) NOT NULL,
  `retry_count` int(11) NOT NULL DEFAULT 0,
  `is_system` tinyint(4) NOT NULL DEFAULT 0,
  `queue_id` bigint(20) DEFAULT NULL,
  `batch_id` bigint(20) DEFAULT NULL,
  `lang` varchar(2) DEFAULT NULL,
  `letter` longtext DEFAULT NULL,
  `event_key` varchar(120) DEFAULT NULL,
  `told` varchar(10) NOT NULL DEFAULT 'now',
  `next_at` datetime(3) DEFAULT NULL,
  `claimed_by` varchar(64) DEFAULT NULL,
  `digest_id` bigint(20) DEFAULT NULL,
  `group_code` varchar(64) DEFAULT NULL,
  `job_code` varchar(100) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `ux_email_event` (`event_key`,`recipient_email`),
  KEY `ix_email_recipient` (`recipient_email`),
  KEY `ix_email_status` (`status`),
  KEY `ix_email_send_time` (`send_time`),
  KEY `ix_email_batch` (`batch_id`,`status`),
  KEY `ix_email_due` (`status`,`next_at`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `email_notifications` DISABLE KEYS */;
INSERT INTO `email_notifications` VALUES
(1,'checks@bank.example','[Procession] LIMITS failed in batch 202407 (checks)','Job LIMITS (LIMITS) failed.\n\nBatch: 202407 (checks)\nAttempt: 1\nEnded: 2026-11-24T20:28:49.081Z\nDuration: 53 ms\n\nError:\nexit code 3\n\nLook: procession batch show 202407 --group checks\nLog: procession logs 202407 LIMITS --group checks\n','pending',NULL,'2026-11-24 20:28:49.081','2026-11-24 20:28:49.081',NULL,'failed',0,1,8,3,NULL,'{\"event\":\"failed\",\"subject\":{\"en\":\"LIMITS failed in batch 202407 (checks)\",\"zh\":\"LIMITS 执行失败,批次 202407(checks)\"},\"headline\":{\"en\":\"Job LIMITS (LIMITS) failed.\",\"zh\":\"作业 LIMITS(LIMITS)执行失败。\"},\"facts\":[{\"label\":{\"en\":\"Batch\",\"zh\":\"批次\"},\"value\":\"202407 (checks)\"},{\"label\":{\"en\":\"Attempt\",\"zh\":\"次数\"},\"value\":\"1\"},{\"label\":{\"en\":\"Ended\",\"zh\":\"结束时间\"},\"value\":\"2026-11-24T20:28:49.081Z\"},{\"label\":{\"en\":\"Duration\",\"zh\":\"耗时\"},\"value\":\"53 ms\"}],\"error\":\"exit code 3\",\"steps\":[{\"label\":{\"en\":\"Look\",\"zh\":\"查看\"},\"command\":\"procession batch show 202407 --group checks\"},{\"label\":{\"en\":\"Log\",\"zh\":\"日志\"},\"command\":\"procession logs 202407 LIMITS --group checks\"}],\"topic\":{\"group\":\"checks\",\"batch_no\":\"202407\",\"job\":\"LIMITS\",\"attempt\":1}}',NULL,'now','2026-11-24 20:28:49.081',NULL,NULL,'checks','LIMITS');
/*!40000 ALTER TABLE `email_notifications` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `event_key` (
  `event_name` varchar(100) NOT NULL,
  `event_key` varchar(100) NOT NULL,
  `create_time` datetime(3) NOT NULL,
  PRIMARY KEY (`event_name`,`event_key`),
  KEY `ix_event_key_time` (`create_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `event_key` DISABLE KEYS */;
/*!40000 ALTER TABLE `event_key` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `executor_group` (
  `group_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `app_name` varchar(64) NOT NULL,
  `title` varchar(200) NOT NULL,
  `addresses` text DEFAULT NULL,
  `allows_glue` tinyint(4) NOT NULL,
  `token_sealed` text NOT NULL,
  `token_hash` varchar(64) NOT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`group_id`),
  UNIQUE KEY `uq_executor_group_app` (`app_name`),
  KEY `ix_executor_group_token` (`token_hash`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `executor_group` DISABLE KEYS */;
/*!40000 ALTER TABLE `executor_group` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `executor_job` (
  `job_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `job_code` varchar(100) NOT NULL,
  `rounds` bigint(20) NOT NULL,
  PRIMARY KEY (`job_id`),
  UNIQUE KEY `uq_executor_job_code` (`job_code`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `executor_job` DISABLE KEYS */;
/*!40000 ALTER TABLE `executor_job` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `executor_registry` (
  `registry_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `app_name` varchar(64) NOT NULL,
  `address` varchar(255) NOT NULL,
  `shows_app_name` tinyint(4) NOT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`registry_id`),
  UNIQUE KEY `uq_executor_registry_address` (`app_name`,`address`),
  KEY `ix_executor_registry_time` (`update_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `executor_registry` DISABLE KEYS */;
/*!40000 ALTER TABLE `executor_registry` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `executor_run` (
  `log_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `queue_id` bigint(20) NOT NULL,
  `run_no` bigint(20) NOT NULL,
  `attempt` bigint(20) NOT NULL,
  `batch_id` bigint(20) NOT NULL,
  `job_code` varchar(100) NOT NULL,
  `job_id` bigint(20) NOT NULL,
  `app_name` varchar(64) NOT NULL,
  `address` varchar(255) DEFAULT NULL,
  `handler` varchar(255) DEFAULT NULL,
  `glue_type` varchar(50) NOT NULL,
  `params` text NOT NULL,
  `block_strategy` varchar(20) NOT NULL,
  `shard_index` bigint(20) NOT NULL,
  `shard_total` bigint(20) NOT NULL,
  `status` varchar(20) NOT NULL,
  `stopping` varchar(20) DEFAULT NULL,
  `node_id` varchar(64) DEFAULT NULL,
  `trigger_time` datetime(3) DEFAULT NULL,
  `trigger_code` bigint(20) DEFAULT NULL,
  `trigger_msg` text DEFAULT NULL,
  `busy_time` datetime(3) DEFAULT NULL,
  `idle_time` datetime(3) DEFAULT NULL,
  `handle_code` bigint(20) DEFAULT NULL,
  `handle_msg` text DEFAULT NULL,
  `result` varchar(20) DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  `end_time` datetime(3) DEFAULT NULL,
  PRIMARY KEY (`log_id`),
  UNIQUE KEY `uq_executor_run_try` (`queue_id`,`attempt`,`shard_index`),
  KEY `ix_executor_run_job` (`job_id`,`status`),
  KEY `ix_executor_run_node` (`node_id`,`status`),
  KEY `ix_executor_run_batch` (`batch_id`),
  KEY `ix_executor_run_app` (`app_name`),
  KEY `ix_executor_run_end` (`end_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `executor_run` DISABLE KEYS */;
/*!40000 ALTER TABLE `executor_run` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `executor_use` (
  `use_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `job_id` bigint(20) NOT NULL,
  `address` varchar(255) NOT NULL,
  `uses` bigint(20) NOT NULL,
  `since_time` datetime(3) NOT NULL,
  `used_time` datetime(3) NOT NULL,
  PRIMARY KEY (`use_id`),
  UNIQUE KEY `uq_executor_use_address` (`job_id`,`address`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `executor_use` DISABLE KEYS */;
/*!40000 ALTER TABLE `executor_use` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `global_param` (
  `param_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `param_name` varchar(100) NOT NULL,
  `body` longtext NOT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`param_id`),
  UNIQUE KEY `uq_global_param` (`param_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `global_param` DISABLE KEYS */;
/*!40000 ALTER TABLE `global_param` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `http_host` (
  `host_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `host_name` varchar(100) NOT NULL,
  `body` longtext NOT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`host_id`),
  UNIQUE KEY `uq_http_host` (`host_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `http_host` DISABLE KEYS */;
/*!40000 ALTER TABLE `http_host` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `idempotency_key` (
  `idempotency_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `user_id` bigint(20) NOT NULL,
  `idem_key` varchar(200) NOT NULL,
  `request_hash` varchar(64) NOT NULL,
  `status` bigint(20) DEFAULT NULL,
  `answer` longtext DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  PRIMARY KEY (`idempotency_id`),
  UNIQUE KEY `uq_idempotency_key` (`user_id`,`idem_key`),
  KEY `ix_idempotency_key_time` (`create_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `idempotency_key` DISABLE KEYS */;
/*!40000 ALTER TABLE `idempotency_key` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_batch` (
  `batch_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `batch_no` varchar(64) NOT NULL,
  `group_code` varchar(64) NOT NULL,
  `batch_type` varchar(64) DEFAULT NULL,
  `status` varchar(20) NOT NULL,
  `business_date` varchar(10) DEFAULT NULL,
  `params` longtext NOT NULL,
  `snapshot` longtext NOT NULL,
  `owner` varchar(64) DEFAULT NULL,
  `started_by` varchar(255) NOT NULL,
  `reason` text DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `end_time` datetime(3) DEFAULT NULL,
  `update_time` datetime(3) NOT NULL,
  `revision` bigint(20) NOT NULL DEFAULT 0,
  `is_paused` tinyint(4) NOT NULL DEFAULT 0,
  `parent_queue_id` bigint(20) DEFAULT NULL,
  `backfill_id` bigint(20) DEFAULT NULL,
  `deadline` datetime(3) DEFAULT NULL,
  `firing_id` bigint(20) DEFAULT NULL,
  `remove_time` datetime(3) DEFAULT NULL,
  `lines_time` datetime(3) DEFAULT NULL,
  PRIMARY KEY (`batch_id`),
  UNIQUE KEY `uq_job_batch` (`batch_no`,`group_code`),
  KEY `ix_job_batch_status` (`status`,`owner`),
  KEY `ix_job_batch_group` (`group_code`,`batch_no`),
  KEY `ix_job_batch_firing` (`firing_id`),
  KEY `ix_job_batch_end` (`group_code`,`end_time`),
  KEY `ix_job_batch_remove` (`remove_time`),
  KEY `ix_job_batch_newest` (`group_code`,`batch_id`),
  KEY `ix_job_batch_time` (`create_time`,`group_code`,`status`)
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_batch` DISABLE KEYS */;
INSERT INTO `job_batch` VALUES
(1,'202407','close','monthly','RUNNING','2024-07-31','{}','{\"group\":{\"code\":\"close\",\"name\":\"close\",\"type\":\"monthly\",\"notify_email\":[\"close@bank.example\"]},\"jobs\":[{\"code\":\"LOAD_GL\",\"name\":\"LOAD_GL\",\"group\":\"close\",\"type\":\"SQL\",\"source\":\"ledger\",\"sql\":\"INSERT INTO effects VALUES (\'LOAD_GL\')\",\"transaction\":\"one\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\"},{\"code\":\"COUNT_GL\",\"name\":\"COUNT_GL\",\"group\":\"close\",\"type\":\"SCRIPT\",\"transaction\":\"one\",\"script\":\"echo counted; echo ::output rows=12\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"is_active\":true,\"trigger_rule\":\"all_success\"},{\"code\":\"POST_GL\",\"name\":\"POST_GL\",\"group\":\"close\",\"type\":\"PROC\",\"source\":\"ledger\",\"proc_name\":\"post_gl\",\"transaction\":\"one\",\"params\":[{\"name\":\"p_batch_no\",\"mode\":\"in\",\"type\":\"text\",\"value\":\"${batch_no}\"}],\"timeout_sec\":3600,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\"},{\"code\":\"FX_RATES\",\"name\":\"FX_RATES\",\"group\":\"close\",\"type\":\"SQL\",\"source\":\"ledger\",\"sql\":\"INSERT INTO effects SELECT job FROM switches\",\"transaction\":\"one\",\"timeout_sec\":1800,\"retry_count\":3,\"retry_delay_sec\":120,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\"},{\"code\":\"REPORT\",\"name\":\"REPORT\",\"group\":\"close\",\"type\":\"SQL\",\"source\":\"ledger\",\"sql\":\"INSERT INTO effects VALUES (\'REPORT\')\",\"transaction\":\"one\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\",\"if\":\"COUNT_GL.rows == 12\"}],\"dependencies\":[[\"COUNT_GL\",\"LOAD_GL\",\"POST_GL\",\"FX_RATES\",\"REPORT\"],[0,1,1],[2,1,0],[3,1,1],[4,1,2,3]],\"sources\":[{\"name\":\"ledger\",\"url\":\"mysql://root@127.0.0.1:3306/procession_upgrade\"}]}','69be9152-954e-4328-84cb-c2a8a8c0b217','unknown',NULL,'2026-11-24 20:28:48.877',NULL,'2026-11-24 20:28:48.991',0,0,NULL,NULL,NULL,NULL,NULL,NULL),
(2,'202407','risk','monthly','RUNNING','2024-07-31','{}','{\"group\":{\"code\":\"risk\",\"name\":\"risk\",\"type\":\"monthly\",\"notify_email\":[\"risk@bank.example\"]},\"jobs\":[{\"code\":\"VALUE\",\"name\":\"VALUE\",\"group\":\"risk\",\"type\":\"SQL\",\"source\":\"ledger\",\"sql\":\"INSERT INTO effects VALUES (\'VALUE\')\",\"transaction\":\"one\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\"},{\"code\":\"VAR\",\"name\":\"VAR\",\"group\":\"risk\",\"type\":\"SQL\",\"source\":\"ledger\",\"sql\":\"INSERT INTO effects VALUES (\'VAR\')\",\"transaction\":\"one\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"tx\":\"ledger\",\"is_active\":true,\"trigger_rule\":\"all_success\"}],\"dependencies\":[[\"VAR\",\"VALUE\"],[0,1,1]],\"sources\":[{\"name\":\"ledger\",\"url\":\"mysql://root@127.0.0.1:3306/procession_upgrade\"}],\"externals\":[{\"job_code\":\"VAR\",\"group\":\"close\",\"depends_on\":\"REPORT\",\"batch\":\"same\",\"when\":\"success\",\"missing\":\"wait\"}]}','69be9152-954e-4328-84cb-c2a8a8c0b217','unknown',NULL,'2026-11-24 20:28:48.877',NULL,'2026-11-24 20:28:48.991',0,0,NULL,NULL,NULL,NULL,NULL,NULL),
(3,'202407','checks','monthly','FAILED','2024-07-31','{}','{\"group\":{\"code\":\"checks\",\"name\":\"checks\",\"type\":\"monthly\",\"notify_email\":[\"checks@bank.example\"]},\"jobs\":[{\"code\":\"LIMITS\",\"name\":\"LIMITS\",\"group\":\"checks\",\"type\":\"SCRIPT\",\"transaction\":\"one\",\"script\":\"echo limit exceeded; exit 3\",\"timeout_sec\":1800,\"retry_count\":0,\"retry_delay_sec\":0,\"priority\":0,\"idempotent\":false,\"is_active\":true,\"trigger_rule\":\"all_success\"}],\"dependencies\":[],\"sources\":[]}',NULL,'unknown',NULL,'2026-11-24 20:28:48.877','2026-11-24 20:28:49.081','2026-11-24 20:28:49.081',0,0,NULL,NULL,NULL,NULL,NULL,NULL);
/*!40000 ALTER TABLE `job_batch` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_def` (
  `job_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `job_code` varchar(100) NOT NULL,
  `job_name` varchar(255) NOT NULL,
  `proc_name` varchar(255) DEFAULT NULL,
  `job_type` varchar(20) NOT NULL,
  `schedule_time` varchar(8) DEFAULT NULL,
  `status` varchar(20) DEFAULT NULL,
  `timeout_sec` int(11) NOT NULL DEFAULT 1800,
  `retry_count` int(11) NOT NULL DEFAULT 0,
  `notify_email` text DEFAULT NULL,
  `is_depend` tinyint(4) NOT NULL DEFAULT 0,
  `is_active` tinyint(4) NOT NULL DEFAULT 1,
  `last_run_time` datetime(3) DEFAULT NULL,
  `next_run_time` datetime(3) DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  `group_code` varchar(64) NOT NULL,
  `source_name` varchar(64) DEFAULT NULL,
  `retry_delay_sec` int(11) NOT NULL DEFAULT 0,
  `priority` int(11) NOT NULL DEFAULT 0,
  `is_idempotent` tinyint(4) NOT NULL DEFAULT 0,
  `owner` varchar(255) DEFAULT NULL,
  `tags` text DEFAULT NULL,
  `body` longtext NOT NULL,
  `trigger_rule` varchar(20) NOT NULL DEFAULT 'all_success',
  `run_mode` varchar(10) DEFAULT NULL,
  PRIMARY KEY (`job_id`),
  UNIQUE KEY `uq_job_def_code` (`job_code`),
  KEY `ix_job_def_group` (`group_code`)
) ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_def` DISABLE KEYS */;
INSERT INTO `job_def` VALUES
(1,'LOAD_GL','LOAD_GL',NULL,'SQL',NULL,NULL,1800,0,'',0,1,NULL,NULL,'2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','close','ledger',0,0,0,NULL,'','{\"sql\":\"INSERT INTO effects VALUES (\'LOAD_GL\')\",\"transaction\":\"one\",\"tx\":\"ledger\"}','all_success',NULL),
(2,'COUNT_GL','COUNT_GL',NULL,'SCRIPT',NULL,NULL,1800,0,'',1,1,NULL,NULL,'2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','close',NULL,0,0,0,NULL,'','{\"script\":\"echo counted; echo ::output rows=12\",\"transaction\":\"one\"}','all_success',NULL),
(3,'POST_GL','POST_GL','post_gl','PROC',NULL,NULL,3600,0,'',1,1,NULL,NULL,'2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','close','ledger',0,0,0,NULL,'','{\"params\":[{\"mode\":\"in\",\"name\":\"p_batch_no\",\"type\":\"text\",\"value\":\"${batch_no}\"}],\"transaction\":\"one\",\"tx\":\"ledger\"}','all_success',NULL),
(4,'FX_RATES','FX_RATES',NULL,'SQL',NULL,NULL,1800,3,'',1,1,NULL,NULL,'2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','close','ledger',120,0,0,NULL,'','{\"sql\":\"INSERT INTO effects SELECT job FROM switches\",\"transaction\":\"one\",\"tx\":\"ledger\"}','all_success',NULL),
(5,'REPORT','REPORT',NULL,'SQL',NULL,NULL,1800,0,'',1,1,NULL,NULL,'2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','close','ledger',0,0,0,NULL,'','{\"if\":\"COUNT_GL.rows == 12\",\"sql\":\"INSERT INTO effects VALUES (\'REPORT\')\",\"transaction\":\"one\",\"tx\":\"ledger\"}','all_success',NULL),
(6,'VALUE','VALUE',NULL,'SQL',NULL,NULL,1800,0,'',0,1,NULL,NULL,'2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','risk','ledger',0,0,0,NULL,'','{\"sql\":\"INSERT INTO effects VALUES (\'VALUE\')\",\"transaction\":\"one\",\"tx\":\"ledger\"}','all_success',NULL),
(7,'VAR','VAR',NULL,'SQL',NULL,NULL,1800,0,'',1,1,NULL,NULL,'2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','risk','ledger',0,0,0,NULL,'','{\"sql\":\"INSERT INTO effects VALUES (\'VAR\')\",\"transaction\":\"one\",\"tx\":\"ledger\"}','all_success',NULL),
(8,'LIMITS','LIMITS',NULL,'SCRIPT',NULL,'FAILED',1800,0,'',0,1,'2026-11-24 20:28:49.028',NULL,'2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','checks',NULL,0,0,0,NULL,'','{\"script\":\"echo limit exceeded; exit 3\",\"transaction\":\"one\"}','all_success',NULL);
/*!40000 ALTER TABLE `job_def` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_dependency` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `job_code` varchar(100) NOT NULL,
  `depends_on` varchar(100) NOT NULL,
  `dependency_order` int(11) NOT NULL DEFAULT 0,
  `edge_condition` text DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `uq_job_dependency` (`job_code`,`depends_on`)
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_dependency` DISABLE KEYS */;
INSERT INTO `job_dependency` VALUES
(1,'COUNT_GL','LOAD_GL',1,NULL),
(2,'POST_GL','COUNT_GL',1,NULL),
(3,'FX_RATES','LOAD_GL',1,NULL),
(4,'REPORT','POST_GL',1,NULL),
(5,'REPORT','FX_RATES',2,NULL),
(6,'VAR','VALUE',1,NULL);
/*!40000 ALTER TABLE `job_dependency` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_execution_logs` (
  `log_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `queue_id` bigint(20) NOT NULL,
  `start_time` datetime(3) DEFAULT NULL,
  `end_time` datetime(3) DEFAULT NULL,
  `status` varchar(20) NOT NULL,
  `error_message` text DEFAULT NULL,
  `duration` bigint(20) DEFAULT NULL,
  `notify_status` varchar(20) NOT NULL DEFAULT 'UNNOTIFIED',
  `retry_count` int(11) NOT NULL DEFAULT 0,
  `attempt` int(11) NOT NULL DEFAULT 0,
  `owner` varchar(64) DEFAULT NULL,
  `log_time` datetime(3) NOT NULL,
  PRIMARY KEY (`log_id`),
  KEY `ix_job_execution_logs_queue` (`queue_id`,`log_id`),
  CONSTRAINT `job_execution_logs_ibfk_1` FOREIGN KEY (`queue_id`) REFERENCES `job_queue` (`queue_id`)
) ENGINE=InnoDB AUTO_INCREMENT=12 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_execution_logs` DISABLE KEYS */;
INSERT INTO `job_execution_logs` VALUES
(1,1,'2026-11-24 20:28:49.028',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.028'),
(2,6,'2026-11-24 20:28:49.028',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.028'),
(3,8,'2026-11-24 20:28:49.028',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.028'),
(4,1,'2026-11-24 20:28:49.028','2026-11-24 20:28:49.054','SUCCESS',NULL,26,'UNNOTIFIED',0,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.054'),
(5,2,'2026-11-24 20:28:49.054',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.054'),
(6,4,'2026-11-24 20:28:49.054',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.054'),
(7,6,'2026-11-24 20:28:49.028','2026-11-24 20:28:49.071','SUCCESS',NULL,43,'UNNOTIFIED',0,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.071'),
(8,4,'2026-11-24 20:28:49.054','2026-11-24 20:28:49.075','RETRY_WAIT','statement 1 (line 1): error 1048 (23000): Column \'job\' cannot be null',21,'UNNOTIFIED',1,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.075'),
(9,8,'2026-11-24 20:28:49.028','2026-11-24 20:28:49.081','FAILED','exit code 3',53,'NOTIFIED',1,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.081'),
(10,2,'2026-11-24 20:28:49.054','2026-11-24 20:28:49.105','SUCCESS',NULL,51,'UNNOTIFIED',0,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.105'),
(11,3,'2026-11-24 20:28:49.105',NULL,'RUNNING',NULL,NULL,'UNNOTIFIED',0,1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:28:49.105');
/*!40000 ALTER TABLE `job_execution_logs` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_external_dependency` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `job_code` varchar(100) NOT NULL,
  `group_code` varchar(64) NOT NULL,
  `depends_on` varchar(100) DEFAULT NULL,
  `batch_expr` varchar(100) NOT NULL,
  `edge_condition` text DEFAULT NULL,
  `missing` varchar(10) NOT NULL,
  `wait_sec` int(11) DEFAULT NULL,
  `dependency_order` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`),
  KEY `ix_job_external_job` (`job_code`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_external_dependency` DISABLE KEYS */;
INSERT INTO `job_external_dependency` VALUES
(1,'VAR','close','REPORT','same',NULL,'wait',NULL,0);
/*!40000 ALTER TABLE `job_external_dependency` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_firing` (
  `firing_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `trigger_id` bigint(20) NOT NULL,
  `planned_at` datetime(3) NOT NULL,
  `nominal_date` varchar(10) DEFAULT NULL,
  `source` varchar(20) NOT NULL,
  `handler` varchar(50) NOT NULL,
  `status` varchar(10) NOT NULL,
  `fire_at` datetime(3) NOT NULL,
  `owner` varchar(64) DEFAULT NULL,
  `attempt` int(11) NOT NULL DEFAULT 0,
  `params` longtext DEFAULT NULL,
  `parent_batch_id` bigint(20) DEFAULT NULL,
  `missed_until` datetime(3) DEFAULT NULL,
  `batch_no` varchar(64) DEFAULT NULL,
  `reason` longtext DEFAULT NULL,
  `fired_at` datetime(3) DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`firing_id`),
  UNIQUE KEY `uq_job_firing` (`trigger_id`,`planned_at`),
  KEY `ix_job_firing_due` (`status`,`fire_at`),
  KEY `ix_job_firing_open` (`trigger_id`,`status`,`planned_at`),
  KEY `ix_job_firing_parent` (`parent_batch_id`,`trigger_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_firing` DISABLE KEYS */;
/*!40000 ALTER TABLE `job_firing` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_group` (
  `group_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `group_code` varchar(64) NOT NULL,
  `group_name` varchar(255) NOT NULL,
  `batch_type` varchar(64) DEFAULT NULL,
  `owner` varchar(255) DEFAULT NULL,
  `notify_email` text DEFAULT NULL,
  `max_parallel` int(11) DEFAULT NULL,
  `time_zone` varchar(64) DEFAULT NULL,
  `params` longtext DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  `options` longtext DEFAULT NULL,
  PRIMARY KEY (`group_id`),
  UNIQUE KEY `uq_job_group_code` (`group_code`)
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_group` DISABLE KEYS */;
INSERT INTO `job_group` VALUES
(1,'close','close','monthly',NULL,'close@bank.example',NULL,NULL,'[]','2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','{}'),
(2,'risk','risk','monthly',NULL,'risk@bank.example',NULL,NULL,'[]','2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','{}'),
(3,'checks','checks','monthly',NULL,'checks@bank.example',NULL,NULL,'[]','2026-11-24 20:28:48.762','2026-11-24 20:28:48.762','{}');
/*!40000 ALTER TABLE `job_group` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_lock` (
  `lock_name` varchar(50) NOT NULL,
  `owner` varchar(64) DEFAULT NULL,
  `epoch` bigint(20) NOT NULL DEFAULT 0,
  `update_time` datetime(3) DEFAULT NULL,
  PRIMARY KEY (`lock_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_lock` DISABLE KEYS */;
INSERT INTO `job_lock` VALUES
('calendar_lock',NULL,0,NULL),
('executor_lock',NULL,0,NULL),
('retention_lock',NULL,0,NULL),
('schedule_lock',NULL,0,NULL),
('xxl_run_lock',NULL,0,NULL);
/*!40000 ALTER TABLE `job_lock` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_log_line` (
  `queue_id` bigint(20) NOT NULL,
  `attempt` int(11) NOT NULL,
  `line_no` bigint(20) NOT NULL,
  `stream` varchar(10) NOT NULL,
  `line_text` text NOT NULL,
  `log_time` datetime(3) NOT NULL,
  PRIMARY KEY (`queue_id`,`attempt`,`line_no`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_log_line` DISABLE KEYS */;
INSERT INTO `job_log_line` VALUES
(1,1,1,'system','connected to source \'ledger\' (mysql, session 68)','2026-11-24 20:28:49.037'),
(1,1,2,'system','statement 1 (line 1): 1 rows changed in 0 ms','2026-11-24 20:28:49.048'),
(2,1,1,'system','started as process 964','2026-11-24 20:28:49.078'),
(2,1,2,'stdout','counted','2026-11-24 20:28:49.079'),
(2,1,3,'stdout','::output rows=12','2026-11-24 20:28:49.079'),
(4,1,1,'system','connected to source \'ledger\' (mysql, session 70)','2026-11-24 20:28:49.060'),
(4,1,2,'system','rolled back','2026-11-24 20:28:49.068'),
(6,1,1,'system','connected to source \'ledger\' (mysql, session 69)','2026-11-24 20:28:49.048'),
(6,1,2,'system','statement 1 (line 1): 1 rows changed in 0 ms','2026-11-24 20:28:49.059'),
(8,1,1,'system','started as process 962','2026-11-24 20:28:49.054'),
(8,1,2,'stdout','limit exceeded','2026-11-24 20:28:49.054');
/*!40000 ALTER TABLE `job_log_line` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_owner` (
  `owner_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `owner_name` varchar(100) NOT NULL,
  `body` longtext NOT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`owner_id`),
  UNIQUE KEY `uq_job_owner` (`owner_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_owner` DISABLE KEYS */;
/*!40000 ALTER TABLE `job_owner` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_queue` (
  `queue_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `batch_id` bigint(20) NOT NULL,
  `batch_no` varchar(64) NOT NULL,
  `job_code` varchar(100) NOT NULL,
  `status` varchar(20) NOT NULL,
  `try_count` int(11) NOT NULL DEFAULT 0,
  `error_message` text DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  `attempt` int(11) NOT NULL DEFAULT 0,
  `owner` varchar(64) DEFAULT NULL,
  `not_before` datetime(3) DEFAULT NULL,
  `start_time` datetime(3) DEFAULT NULL,
  `end_time` datetime(3) DEFAULT NULL,
  `outputs` longtext DEFAULT NULL,
  `skip_kind` varchar(10) DEFAULT NULL,
  `run_mode` varchar(10) DEFAULT NULL,
  `priority` int(11) DEFAULT NULL,
  `run_no` int(11) NOT NULL DEFAULT 1,
  `crash_count` int(11) NOT NULL DEFAULT 0,
  `unresolved` int(11) NOT NULL DEFAULT 0,
  `waits_on` text DEFAULT NULL,
  `is_taken` tinyint(4) NOT NULL DEFAULT 1,
  `hosted_by` varchar(64) DEFAULT NULL,
  PRIMARY KEY (`queue_id`),
  UNIQUE KEY `uq_job_queue` (`batch_no`,`job_code`),
  KEY `ix_job_queue_jobs` (`batch_id`,`queue_id`),
  KEY `ix_job_queue_hosted` (`hosted_by`),
  CONSTRAINT `job_queue_ibfk_1` FOREIGN KEY (`batch_id`) REFERENCES `job_batch` (`batch_id`)
) ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_queue` DISABLE KEYS */;
INSERT INTO `job_queue` VALUES
(1,1,'202407','LOAD_GL','SUCCESS',0,NULL,'2026-11-24 20:28:48.877','2026-11-24 20:28:49.054',1,'69be9152-954e-4328-84cb-c2a8a8c0b217',NULL,'2026-11-24 20:28:49.028','2026-11-24 20:28:49.054','{\"rows_affected\":1}',NULL,NULL,NULL,1,0,0,NULL,1,NULL),
(2,1,'202407','COUNT_GL','SUCCESS',0,NULL,'2026-11-24 20:28:48.877','2026-11-24 20:28:49.105',1,'69be9152-954e-4328-84cb-c2a8a8c0b217',NULL,'2026-11-24 20:28:49.054','2026-11-24 20:28:49.105','{\"values\":{\"rows\":\"12\"},\"rows_affected\":0,\"exit_code\":0}',NULL,NULL,NULL,1,0,0,NULL,1,NULL),
(3,1,'202407','POST_GL','RUNNING',0,NULL,'2026-11-24 20:28:48.877','2026-11-24 20:28:49.105',1,'69be9152-954e-4328-84cb-c2a8a8c0b217',NULL,'2026-11-24 20:28:49.105',NULL,NULL,NULL,NULL,NULL,1,0,0,NULL,1,NULL),
(4,1,'202407','FX_RATES','RETRY_WAIT',1,'statement 1 (line 1): error 1048 (23000): Column \'job\' cannot be null','2026-11-24 20:28:48.877','2026-11-24 20:28:49.075',1,'69be9152-954e-4328-84cb-c2a8a8c0b217','2026-11-24 20:30:49.075','2026-11-24 20:28:49.054','2026-11-24 20:28:49.075',NULL,NULL,NULL,NULL,1,0,0,NULL,1,NULL),
(5,1,'202407','REPORT','PENDING',0,NULL,'2026-11-24 20:28:48.877','2026-11-24 20:28:48.877',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,0,0,NULL,1,NULL),
(6,2,'202407','VALUE','SUCCESS',0,NULL,'2026-11-24 20:28:48.877','2026-11-24 20:28:49.071',1,'69be9152-954e-4328-84cb-c2a8a8c0b217',NULL,'2026-11-24 20:28:49.028','2026-11-24 20:28:49.071','{\"rows_affected\":1}',NULL,NULL,NULL,1,0,0,NULL,1,NULL),
(7,2,'202407','VAR','PENDING',0,NULL,'2026-11-24 20:28:48.877','2026-11-24 20:28:48.877',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,0,0,NULL,1,NULL),
(8,3,'202407','LIMITS','FAILED',1,'exit code 3','2026-11-24 20:28:48.877','2026-11-24 20:28:49.081',1,'69be9152-954e-4328-84cb-c2a8a8c0b217',NULL,'2026-11-24 20:28:49.028','2026-11-24 20:28:49.081','{\"rows_affected\":0,\"exit_code\":3}',NULL,NULL,NULL,1,0,0,NULL,1,NULL);
/*!40000 ALTER TABLE `job_queue` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_report` (
  `queue_id` bigint(20) NOT NULL,
  `attempt` int(11) NOT NULL,
  `batch_id` bigint(20) NOT NULL,
  `owner` varchar(64) NOT NULL,
  `report` longtext NOT NULL,
  `create_time` datetime(3) NOT NULL,
  PRIMARY KEY (`queue_id`,`attempt`),
  KEY `ix_job_report_batch` (`batch_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_report` DISABLE KEYS */;
/*!40000 ALTER TABLE `job_report` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_trigger` (
  `trigger_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `trigger_code` varchar(100) NOT NULL,
  `trigger_name` varchar(255) NOT NULL,
  `group_code` varchar(50) DEFAULT NULL,
  `schedule_type` varchar(20) NOT NULL,
  `schedule_conf` varchar(255) NOT NULL,
  `time_zone` varchar(50) NOT NULL,
  `handler` varchar(50) NOT NULL,
  `trigger_status` varchar(10) NOT NULL,
  `reason` longtext DEFAULT NULL,
  `origin` varchar(20) NOT NULL,
  `revision` bigint(20) NOT NULL DEFAULT 1,
  `body` longtext NOT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`trigger_id`),
  UNIQUE KEY `uq_job_trigger_code` (`trigger_code`),
  KEY `ix_job_trigger_type` (`schedule_type`,`trigger_status`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_trigger` DISABLE KEYS */;
INSERT INTO `job_trigger` VALUES
(1,'CLOSE_MONTHLY','CLOSE_MONTHLY','close','cron','0 0 2 1 * ?','UTC','queueDispatcherHandler','ENABLED',NULL,'file',1,'{\"code\":\"CLOSE_MONTHLY\",\"group\":\"close\",\"batch_no\":\"month(-1)\",\"cron\":\"0 0 2 1 * ?\",\"time_zone\":\"UTC\",\"misfire\":\"skip\"}','2026-11-24 20:28:48.762','2026-11-24 20:28:48.762');
/*!40000 ALTER TABLE `job_trigger` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `job_trigger_time` (
  `trigger_id` bigint(20) NOT NULL,
  `revision` bigint(20) NOT NULL,
  `next_time` datetime(3) DEFAULT NULL,
  `last_time` datetime(3) DEFAULT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`trigger_id`),
  KEY `ix_job_trigger_time_next` (`next_time`,`trigger_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `job_trigger_time` DISABLE KEYS */;
INSERT INTO `job_trigger_time` VALUES
(1,1,'2026-12-01 02:00:00.000',NULL,'2026-11-24 20:28:48.762');
/*!40000 ALTER TABLE `job_trigger_time` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `login_attempt` (
  `attempt_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `user_name` varchar(64) NOT NULL,
  `address` varchar(64) NOT NULL,
  `create_time` datetime(3) NOT NULL,
  PRIMARY KEY (`attempt_id`),
  KEY `ix_login_attempt_user` (`user_name`,`create_time`),
  KEY `ix_login_attempt_address` (`address`,`create_time`),
  KEY `ix_login_attempt_time` (`create_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `login_attempt` DISABLE KEYS */;
/*!40000 ALTER TABLE `login_attempt` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `notify_snooze` (
  `snooze_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `group_code` varchar(64) NOT NULL,
  `job_code` varchar(100) DEFAULT NULL,
  `type` varchar(20) DEFAULT NULL,
  `until_time` datetime(3) NOT NULL,
  `actor` varchar(255) NOT NULL,
  `reason` varchar(1000) NOT NULL,
  `create_time` datetime(3) NOT NULL,
  PRIMARY KEY (`snooze_id`),
  KEY `ix_notify_snooze_until` (`until_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `notify_snooze` DISABLE KEYS */;
/*!40000 ALTER TABLE `notify_snooze` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `oidc_login` (
  `login_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `secret_hash` varchar(64) NOT NULL,
  `create_time` datetime(3) NOT NULL,
  PRIMARY KEY (`login_id`),
  UNIQUE KEY `uq_oidc_login` (`secret_hash`),
  KEY `ix_oidc_login_time` (`create_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `oidc_login` DISABLE KEYS */;
/*!40000 ALTER TABLE `oidc_login` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `procession_ledger` (
  `idem_key` varchar(255) NOT NULL,
  `state` varchar(10) NOT NULL,
  `batch_no` varchar(64) NOT NULL,
  `job_code` varchar(100) NOT NULL,
  `attempt` int(11) NOT NULL,
  `outputs` longtext DEFAULT NULL,
  `opened_at` datetime(3) NOT NULL,
  `done_at` datetime(3) DEFAULT NULL,
  PRIMARY KEY (`idem_key`),
  KEY `ix_procession_ledger_batch` (`batch_no`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `procession_ledger` DISABLE KEYS */;
INSERT INTO `procession_ledger` VALUES
('69be9152954e/202407/LOAD_GL/1','done','202407','LOAD_GL',1,'{\"rows_affected\":1}','2026-11-24 20:28:49.048','2026-11-24 20:28:49.050'),
('69be9152954e/202407/VALUE/1','done','202407','VALUE',1,'{\"rows_affected\":1}','2026-11-24 20:28:49.058','2026-11-24 20:28:49.061');
/*!40000 ALTER TABLE `procession_ledger` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `procession_meta` (
  `name` varchar(64) NOT NULL,
  `value` text NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `procession_meta` DISABLE KEYS */;
INSERT INTO `procession_meta` VALUES
('definition_epoch','1'),
('installation','69be9152954e432884cbc2a8a8c0b217');
/*!40000 ALTER TABLE `procession_meta` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `resource_pool` (
  `pool_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `pool_name` varchar(100) NOT NULL,
  `slots` int(11) NOT NULL,
  `body` longtext NOT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`pool_id`),
  UNIQUE KEY `uq_resource_pool` (`pool_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `resource_pool` DISABLE KEYS */;
/*!40000 ALTER TABLE `resource_pool` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `sealed_secret` (
  `secret_name` varchar(100) NOT NULL,
  `sealed` longtext NOT NULL,
  `sealed_by` varchar(255) NOT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`secret_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `sealed_secret` DISABLE KEYS */;
/*!40000 ALTER TABLE `sealed_secret` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `secret_source` (
  `secret_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `secret_name` varchar(100) NOT NULL,
  `body` longtext NOT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  PRIMARY KEY (`secret_id`),
  UNIQUE KEY `uq_secret_source` (`secret_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `secret_source` DISABLE KEYS */;
/*!40000 ALTER TABLE `secret_source` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `switches` (
  `job` varchar(64) DEFAULT NULL,
  `work` bigint(20) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `switches` DISABLE KEYS */;
INSERT INTO `switches` VALUES
('FX_RATES',0);
/*!40000 ALTER TABLE `switches` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `tx_breach` (
  `job_code` varchar(100) NOT NULL,
  `batch_no` varchar(64) NOT NULL,
  `queue_id` bigint(20) NOT NULL,
  `attempt` int(11) NOT NULL,
  `said` text NOT NULL,
  `create_time` datetime(3) NOT NULL,
  PRIMARY KEY (`job_code`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `tx_breach` DISABLE KEYS */;
/*!40000 ALTER TABLE `tx_breach` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `user_grant` (
  `grant_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `user_id` bigint(20) NOT NULL,
  `place` varchar(64) NOT NULL,
  `role` varchar(20) NOT NULL,
  `rights` varchar(200) NOT NULL,
  `origin` varchar(10) NOT NULL,
  `create_time` datetime(3) NOT NULL,
  PRIMARY KEY (`grant_id`),
  UNIQUE KEY `uq_user_grant` (`user_id`,`place`,`role`,`origin`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `user_grant` DISABLE KEYS */;
/*!40000 ALTER TABLE `user_grant` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `user_session` (
  `session_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `user_id` bigint(20) NOT NULL,
  `secret_hash` varchar(64) NOT NULL,
  `proof` varchar(10) NOT NULL,
  `address` varchar(64) NOT NULL,
  `agent` varchar(200) DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `used_time` datetime(3) NOT NULL,
  `end_time` datetime(3) NOT NULL,
  PRIMARY KEY (`session_id`),
  UNIQUE KEY `uq_user_session` (`secret_hash`),
  KEY `ix_user_session_user` (`user_id`),
  KEY `ix_user_session_end` (`end_time`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `user_session` DISABLE KEYS */;
/*!40000 ALTER TABLE `user_session` ENABLE KEYS */;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `xxl_run` (
  `run_id` bigint(20) NOT NULL AUTO_INCREMENT,
  `app_name` varchar(64) NOT NULL,
  `log_id` bigint(20) NOT NULL,
  `log_date_time` bigint(20) NOT NULL,
  `job_id` bigint(20) NOT NULL,
  `handler` varchar(100) NOT NULL,
  `params` text NOT NULL,
  `admin` varchar(1000) NOT NULL,
  `block_strategy` varchar(20) NOT NULL,
  `timeout_sec` bigint(20) DEFAULT NULL,
  `shard_index` bigint(20) NOT NULL,
  `shard_total` bigint(20) NOT NULL,
  `status` varchar(20) NOT NULL,
  `stopping` varchar(20) DEFAULT NULL,
  `batch_ids` text DEFAULT NULL,
  `deadline` datetime(3) DEFAULT NULL,
  `handle_code` bigint(20) DEFAULT NULL,
  `handle_msg` text DEFAULT NULL,
  `callback` varchar(20) NOT NULL,
  `callback_at` datetime(3) DEFAULT NULL,
  `callback_tries` bigint(20) NOT NULL,
  `callback_error` text DEFAULT NULL,
  `create_time` datetime(3) NOT NULL,
  `update_time` datetime(3) NOT NULL,
  `end_time` datetime(3) DEFAULT NULL,
  PRIMARY KEY (`run_id`),
  UNIQUE KEY `uq_xxl_run_log` (`app_name`,`log_id`,`log_date_time`),
  KEY `ix_xxl_run_job` (`app_name`,`status`,`job_id`),
  KEY `ix_xxl_run_callback` (`app_name`,`callback`,`callback_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `xxl_run` DISABLE KEYS */;
/*!40000 ALTER TABLE `xxl_run` ENABLE KEYS */;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

