//! Validates a data source: a URL without a password and without dangerous options.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::files::DefinitionFiles;
use crate::definition::group_access;
use crate::definition::params::usable_name;
use crate::definition::raw::RawSource;
use crate::definition::sqlite_bodies;
use crate::domain::id::SourceName;
use crate::domain::source::transport::{SourceTransport, with_verified_tls};
use crate::domain::source::{DataSource, DialectName, ReadPassword};
use std::collections::BTreeMap;
use url::Url;

/// Options that a URL may contain. This is an allow-list, because options of database drivers have been used to read
/// files of the host and to load code.
const SERVER_OPTIONS: &[&str] = &["ssl-mode", "sslmode", "ssl-ca", "sslrootcert", "charset"];
const SQLITE_OPTIONS: &[&str] = &["mode"];
const SQLITE_MODES: &[&str] = &["ro", "rw", "rwc", "memory"];

/// Builds a source from the raw definition, or reports why that is impossible.
pub(crate) fn source(
    raw: RawSource,
    files: &DefinitionFiles<'_>,
    report: &mut FaultReport,
) -> Option<DataSource> {
    let name = match SourceName::parse(&raw.name.value) {
        Ok(name) => Some(name),
        Err(error) => {
            report.fault(&raw.name.at, error.to_string(), "");
            None
        }
    };
    let whose = format!("source {}", raw.name.value);
    let Some(url) = &raw.url else {
        let cure =
            "add url: sqlite:FILE, mysql://user@host:3306/db or postgres://user@host:5432/db";
        report.fault(&raw.name.at, format!("{whose} has no url"), cure);
        return None;
    };
    let dialect = check_url(&whose, url, report);
    check_password(&whose, &raw, dialect, report);
    let procedures = procedures(&whose, &raw, files, report);
    if dialect.is_some_and(|d| d != DialectName::Sqlite) && !procedures.is_empty() {
        report.add_warning(
            &raw.name.at,
            format!("{whose} has named procedures, which are used on SQLite only"),
            "elsewhere the database's own procedures are called; remove them if none is SQLite",
        );
    }
    Some(DataSource {
        name: name?,
        url: url.value.trim().to_owned(),
        password_env: raw.password_env.map(|p| p.value),
        password_file: raw.password_file.map(|p| p.value),
        password_secret: raw.password_secret.map(|p| p.value),
        read_password: ReadPassword::default(),
        max_parallel: raw.max_parallel.map(|m| m.value),
        procedures,
        access: group_access::make_access(&whose, raw.access, report),
    })
}

/// Validates a URL without ever repeating it in a message, because it may contain a password where none is permitted.
fn check_url(whose: &str, url: &Located<String>, report: &mut FaultReport) -> Option<DialectName> {
    let text = url.value.trim();
    let Some(dialect) = DialectName::of_url(text) else {
        let scheme: String = text.split(':').next().unwrap_or_default().chars().take(20).collect();
        let what = format!("{whose}: url has the scheme {scheme:?}, which is not supported");
        let what = if text.contains(':') { what } else { format!("{whose}: url has no scheme") };
        report.fault(
            &url.at,
            what,
            "use sqlite:, mysql://, mariadb://, postgres:// or postgresql://",
        );
        return None;
    };
    match dialect {
        DialectName::Sqlite => check_sqlite(whose, url, text, report),
        DialectName::Mysql | DialectName::Postgres => check_server(whose, url, text, report),
    }
    Some(dialect)
}

fn check_sqlite(whose: &str, url: &Located<String>, text: &str, report: &mut FaultReport) {
    let rest = text.strip_prefix("sqlite:").unwrap_or(text);
    let (file, query) = rest.split_once('?').unwrap_or((rest, ""));
    if file.trim_start_matches("//").is_empty() {
        report.fault(&url.at, format!("{whose}: url names no file"), "write sqlite:FILE");
    }
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        check_option(whose, url, &key, SQLITE_OPTIONS, report);
        if key == "mode" && !SQLITE_MODES.contains(&&*value) {
            let cure = format!("use one of {}", SQLITE_MODES.join(", "));
            report.fault(&url.at, format!("{whose}: url has an unknown mode"), cure);
        }
    }
}

fn check_server(whose: &str, url: &Located<String>, text: &str, report: &mut FaultReport) {
    let parsed = match Url::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let what = format!("{whose}: url is not readable: {error}");
            report.fault(
                &url.at,
                what,
                "write mysql://user@host:3306/db or postgres://user@host:5432/db",
            );
            return;
        }
    };
    if parsed.host_str().is_none_or(str::is_empty) {
        report.fault(
            &url.at,
            format!("{whose}: url names no host"),
            "write user@host:port after //",
        );
    }
    let holds = parsed.query_pairs().any(|(key, _)| key.to_lowercase().contains("pass"));
    if parsed.password().is_some() || holds {
        report.fault(
            &url.at,
            format!("{whose}: url holds a password, which everyone who reads the file would see"),
            "remove it, and name where it is: password_env: NAME_OF_A_VARIABLE, password_file: /run/secrets/NAME or password_secret: NAME",
        );
    }
    if parsed.fragment().is_some() {
        let cure = "write a '#' that belongs to a name as %23";
        report.fault(&url.at, format!("{whose}: url holds a '#'"), cure);
    }
    for (key, _) in parsed.query_pairs().filter(|(key, _)| !key.to_lowercase().contains("pass")) {
        check_option(whose, url, &key, SERVER_OPTIONS, report);
    }
    if let Some(weakness) =
        SourceTransport::of_url(&with_verified_tls(text)).and_then(|t| t.weakness())
    {
        report.add_warning(
            &url.at,
            format!("{whose}: {weakness}"),
            "leave the option out, or write sslmode=verify-full (PostgreSQL), ssl-mode=VERIFY_IDENTITY (MySQL, MariaDB)",
        );
    }
}

fn check_option(
    whose: &str,
    url: &Located<String>,
    key: &str,
    known: &[&str],
    report: &mut FaultReport,
) {
    if !known.contains(&key) {
        let key: String = key.chars().take(40).collect();
        let what = format!("{whose}: url has the option {key:?}, which is not allowed");
        report.fault(&url.at, what, format!("remove it; allowed are {}", known.join(", ")));
    }
}

fn check_password(
    whose: &str,
    raw: &RawSource,
    dialect: Option<DialectName>,
    report: &mut FaultReport,
) {
    let given = [
        ("password_env", &raw.password_env),
        ("password_file", &raw.password_file),
        ("password_secret", &raw.password_secret),
    ];
    let named: Vec<(&str, &Located<String>)> =
        given.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))).collect();
    if let [(first, _), (second, value), ..] = named[..] {
        let what = format!("{whose} has both {first} and {second}");
        report.fault(&value.at, what, "keep one of the two");
    }
    if dialect == Some(DialectName::Sqlite)
        && let Some((key, given)) = named.first()
    {
        let what = format!("{whose} is SQLite, which has no password");
        report.fault(&given.at, what, format!("remove {key}"));
    }
    if let Some(secret) = raw.password_secret.as_ref().filter(|e| !usable_name(&e.value)) {
        report.fault(
            &secret.at,
            format!("{whose}: password_secret is not the name of a secret"),
            "write the name alone (letters, digits, '_'); procession secret list shows those that there are",
        );
    }
    if let Some(env) = raw.password_env.as_ref().filter(|e| !usable_name(&e.value)) {
        report.fault(
            &env.at,
            format!("{whose}: password_env is not the name of an environment variable"),
            "write the variable's name (letters, digits, '_'), not the password itself",
        );
    }
}

fn procedures(
    whose: &str,
    raw: &RawSource,
    files: &DefinitionFiles<'_>,
    report: &mut FaultReport,
) -> BTreeMap<String, String> {
    let mut all = raw.procedures.clone();
    if let Some(file) = &raw.procedures_file {
        all.extend(files.named_texts(whose, file, report));
    }
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (name, body) in all {
        if body.value.trim().is_empty() {
            let what = format!("{whose}: procedure {} is empty", name.value);
            report.fault(&body.at, what, "write its statements");
        }
        let stands = format!("{whose}: line {{}} of procedure {}", name.value);
        sqlite_bodies::check_text(&body.value, &stands, &body.at, report);
        if found.insert(name.value.clone(), body.value).is_some() {
            let what = format!("{whose}: procedure {} is defined twice", name.value);
            report.fault(&name.at, what, "keep it in procedures or in procedures_file");
        }
    }
    found
}
