-- Finding acts: by who, what and on what, the newest first.

CREATE INDEX ix_audit_log_actor ON audit_log (actor, audit_id);

CREATE INDEX ix_audit_log_action ON audit_log (action, audit_id);

CREATE INDEX ix_audit_log_group ON audit_log (group_code, audit_id);

CREATE INDEX ix_audit_log_number ON audit_log (batch_no, audit_id);

CREATE INDEX ix_audit_log_job ON audit_log (job_code, audit_id);
