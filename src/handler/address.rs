//! Checks and displays the URL of a source. The environment may put a password into the URL, and a
//! password with `/ # ? @` in it shifts where a reader thinks the password ends; so a URL that is
//! not clearly a host and a port is refused before a driver sees it, and is never shown.

use crate::db::target::TargetDatabase;
use url::Url;

/// The displayable part of the URL: SQLite's file, or a server's host and port, and nothing else.
/// An error gives a hint and contains nothing of the URL except its scheme.
pub(crate) fn shown(database: &dyn TargetDatabase, url: &str) -> Result<String, String> {
    if database.capabilities().is_file {
        let file = url.split(['?', '#']).next().unwrap_or_default();
        let is_file = !file.contains('@');
        return Ok(if is_file { file.to_owned() } else { format!("{}: a file", database.name()) });
    }
    server(database, url)
}

fn server(database: &dyn TargetDatabase, text: &str) -> Result<String, String> {
    let name = database.name();
    let unreadable =
        || format!("{name}: address not readable; percent-encode / # ? @ : in the password");
    let has_authority = text.split_once(':').is_some_and(|(_, rest)| rest.starts_with("//"));
    let url = Url::parse(text).ok().filter(|_| has_authority).ok_or_else(unreadable)?;
    // A password that was cut: `mysql://root:12/secret@host/x` parses as host `root` and port 12.
    let tail = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    if url.fragment().is_some() || tail.contains('@') || url.path().contains("%40") {
        return Err(unreadable());
    }
    if url.query_pairs().any(|(key, _)| !database.takes_url_option(&key)) {
        return Err(format!(
            "{name}: the address has an option that the driver does not know; remove it"
        ));
    }
    let host = match url.host_str().unwrap_or_default() {
        "" => "the default host",
        host if is_plain(host) => host,
        host if database.capabilities().has_socket_addresses && is_socket(host) => "a local socket",
        _ => return Err(unreadable()),
    };
    Ok(url.port().map_or(host.to_owned(), |port| format!("{host}:{port}")))
}

/// A name, an IPv4 address or a bracketed IPv6 address.
fn is_plain(host: &str) -> bool {
    host.starts_with('[') || host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
}

/// `%2Fvar%2Frun%2Fpostgresql`
fn is_socket(host: &str) -> bool {
    let host = host.to_ascii_uppercase();
    host.starts_with("%2F") && is_plain(&host.replace("%2F", ""))
}

/// The message of a failed connection. Drivers quote values of the URL in errors about its
/// settings: those are omitted. A "lost connection" is renamed, because there was no connection to
/// lose.
pub(crate) fn opening(said: String) -> String {
    let Some((_, fault)) = said.split_once("error with configuration: ") else {
        return said;
    };
    let fault = match (fault.find('"'), fault.rfind('"')) {
        (Some(first), Some(last)) => format!("{}…{}", &fault[..first], &fault[last + 1..]),
        _ => fault.to_owned(),
    };
    format!("configuration fault: {fault}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::target::of_url;

    fn of(url: &str) -> Result<String, String> {
        shown(of_url(url).expect("a known scheme"), url)
    }

    #[test]
    fn readable_addresses_show_host_and_port_only() {
        for (url, wanted) in [
            ("mysql://root:pw@127.0.0.1:3306/x", "127.0.0.1:3306"),
            ("mariadb://root:p@w@db-1.example.com/x?ssl-mode=DISABLED", "db-1.example.com"),
            ("postgres://u:p%2Fw@[::1]:5432/d?sslmode=verify-full", "[::1]:5432"),
            ("postgresql://u@%2Fvar%2Frun%2Fpostgresql/d", "a local socket"),
            ("postgres:///d?host=/var/run/postgresql", "the default host"),
            ("sqlite:month-end.db?mode=ro", "sqlite:month-end.db"),
            ("sqlite://root:pw@h/x", "sqlite: a file"),
        ] {
            assert_eq!(of(url).as_deref(), Ok(wanted), "{url}");
        }
    }

    #[test]
    fn what_a_driver_quotes_of_its_settings_is_left_out() {
        let said =
            "connection lost: error with configuration: unknown value \"hun\\\"ter2\" for `x`";
        assert_eq!(opening(said.to_owned()), "configuration fault: unknown value … for `x`");
        assert_eq!(opening("connection lost: refused".into()), "connection lost: refused");
    }
}
