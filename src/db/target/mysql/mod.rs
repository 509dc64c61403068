//! Servers that speak MySQL's protocol: MySQL, MariaDB and OceanBase.

mod call;
mod errors;
mod grants;
mod value;

pub(in crate::db) use errors::{is_execute_denied, read_error};

use crate::db::fault::SessionError;
use crate::db::mysql_server::MysqlServer;
use crate::db::routine::Routine;
use crate::db::session::{Arg, Session};
use crate::db::target::call::{CallError, CallResult, RoutineCall};
use crate::db::target::{
    Capabilities, InputValue, StopMeans, TargetDatabase, TrialStatement, UserPrivileges,
};
use futures_util::future::BoxFuture;

/// MySQL, and a server of which the product is not known yet.
pub(super) const MYSQL: &dyn TargetDatabase = &MysqlDatabase { server: MysqlServer::Mysql };
const MARIADB: &dyn TargetDatabase = &MysqlDatabase { server: MysqlServer::MariaDb };
const OCEANBASE: &dyn TargetDatabase = &MysqlDatabase { server: MysqlServer::OceanBase };

/// The family of a product.
pub(in crate::db) fn of_server(server: MysqlServer) -> &'static dyn TargetDatabase {
    match server {
        MysqlServer::Mysql => MYSQL,
        MysqlServer::MariaDb => MARIADB,
        MysqlServer::OceanBase => OCEANBASE,
    }
}

#[derive(Debug)]
struct MysqlDatabase {
    server: MysqlServer,
}

impl MysqlDatabase {
    /// Whom a GRANT names.
    fn grantee(&self, user: Option<&str>) -> String {
        user.and_then(|user| self.quote_user(user)).unwrap_or_else(|| "this user".to_owned())
    }
}

const LEDGER_TABLE: &str = "\
CREATE TABLE procession_ledger (
    idem_key VARCHAR(255) NOT NULL PRIMARY KEY,
    state VARCHAR(10) NOT NULL,
    batch_no VARCHAR(64) NOT NULL,
    job_code VARCHAR(100) NOT NULL,
    attempt INT NOT NULL,
    outputs LONGTEXT,
    opened_at DATETIME(3) NOT NULL,
    done_at DATETIME(3)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin";

static CAPABILITIES: Capabilities = Capabilities {
    has_routines: true,
    is_file: false,
    has_socket_addresses: false,
    spans_databases: true,
    stop: StopMeans::EndSession,
    stops_definers: false,
    folds_names: false,
    has_functions_named_as_procedures: true,
    omits_only_last_arguments: true,
    lets_bodies_end_transactions: true,
    sends_null_with_lock: true,
    sends_values_of_output_calls: true,
};

impl TargetDatabase for MysqlDatabase {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn quote_name(&self, name: &str) -> String {
        quote_name(name)
    }

    fn quote_user(&self, user: &str) -> Option<String> {
        let (name, host) = user.rsplit_once('@').unwrap_or((user, "%"));
        let quoted = |part: &str| format!("'{}'", part.replace('\'', "''"));
        Some(format!("{}@{}", quoted(name), quoted(host)))
    }

    fn bind_input(&self, value: &InputValue<'_>) -> Arg {
        value.to_number_argument(value::is_decimal)
    }

    fn input_fault(&self, value: &InputValue<'_>) -> Option<String> {
        value::input_fault(value)
    }

    fn takes_text_as_bits(&self, server_type: &str) -> bool {
        server_type.get(..3).is_some_and(|head| head.eq_ignore_ascii_case("bit"))
    }

    /// The server shows a routine only to users with a privilege for it.
    fn missing_routine_hint(&self) -> &'static str {
        ", or this user has no right to it (GRANT EXECUTE ON PROCEDURE)"
    }

    fn read_privileges<'s>(
        &self,
        session: &'s mut Session,
    ) -> BoxFuture<'s, Result<Option<Box<dyn UserPrivileges>>, SessionError>> {
        Box::pin(grants::read_privileges(session))
    }

    fn definer_stop_grant(&self, user: Option<&str>) -> String {
        let right = match self.server {
            MysqlServer::MariaDb => "CONNECTION ADMIN",
            MysqlServer::Mysql | MysqlServer::OceanBase => "CONNECTION_ADMIN",
        };
        format!("GRANT {right} ON *.* TO {}", self.grantee(user))
    }

    fn not_stoppable_hint(&self) -> &'static str {
        "; GRANT CONNECTION ADMIN ON *.* to this user (on MySQL CONNECTION_ADMIN, and SYSTEM_USER \
         where the definer has it), so that it may stop procedures that run as their definer"
    }

    fn reset_grant(&self, user: Option<&str>) -> Option<String> {
        (self.server == MysqlServer::Mysql).then(|| {
            let user = self.grantee(user);
            format!("GRANT SELECT ON performance_schema.user_variables_by_thread TO {user}")
        })
    }

    fn hidden_routine_grant(&self, schema: &str, grantee: &str) -> String {
        match self.server {
            MysqlServer::MariaDb => format!(
                "GRANT SHOW CREATE ROUTINE ON `{schema}`.* TO {grantee} (before MariaDB 11.3: GRANT SELECT ON \
                 mysql.proc TO {grantee})"
            ),
            MysqlServer::Mysql | MysqlServer::OceanBase => {
                format!("GRANT SHOW_ROUTINE ON *.* TO {grantee}")
            }
        }
    }

    fn call_routine<'s>(
        &self,
        session: &'s mut Session,
        call: &'s RoutineCall<'_>,
    ) -> BoxFuture<'s, Result<CallResult, CallError>> {
        Box::pin(call::call_routine(session, call))
    }

    fn ledger_table(&self) -> &'static str {
        LEDGER_TABLE
    }

    fn read_only_statement(&self) -> &'static str {
        "SET SESSION TRANSACTION READ ONLY"
    }

    fn lock_wait_limit(&self, seconds: u32) -> Option<String> {
        Some(format!("SET SESSION lock_wait_timeout = {seconds}"))
    }

    fn packet_limit_query(&self) -> Option<&'static str> {
        Some("SELECT @@max_allowed_packet")
    }

    fn trial_statement<'s>(
        &'s self,
        _: &'s mut Session,
        seconds: u64,
    ) -> BoxFuture<'s, TrialStatement> {
        let text = format!("DO SLEEP({seconds})");
        Box::pin(std::future::ready(TrialStatement { text, is_stubborn: false }))
    }

    fn end_request(&self, number: i64) -> String {
        format!("KILL CONNECTION {number}")
    }
}

fn quote_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The quoted path of a routine.
fn routine_path(routine: &Routine) -> String {
    let parts = [Some(&routine.schema), routine.package.as_ref(), Some(&routine.name)];
    parts.into_iter().flatten().map(|part| quote_name(part)).collect::<Vec<_>>().join(".")
}
