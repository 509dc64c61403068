//! Decides whether the lines of a crontab name the user they run as: by the path, otherwise by all
//! lines together.

use super::line::{CrontabEntry, CrontabLine};
use crate::import::CrontabUsers as Users;

/// A crontab for which it is unknown whether its lines name users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Undecided {
    /// The line, counted from 1.
    pub(super) line: u64,
    /// What cannot be decided.
    pub(super) what: String,
    pub(super) fix: &'static str,
}

const SAY_WHICH: &str = "import again with --system (lines name users, as in /etc/crontab) or --user (a user's own crontab)";

/// Accounts that are not programs: as a sixth word they are users.
const ACCOUNTS: &[&str] = &[
    "_apt",
    "amavis",
    "apache",
    "bin",
    "centos",
    "clamav",
    "daemon",
    "db2inst1",
    "debian",
    "debian-spamd",
    "ec2-user",
    "gnats",
    "grafana",
    "informix",
    "irc",
    "jenkins",
    "logcheck",
    "mongodb",
    "munin",
    "nagios",
    "nobody",
    "oracle",
    "rabbitmq",
    "root",
    "smmsp",
    "sybase",
    "sys",
    "tomcat",
    "ubuntu",
    "uucp",
    "www",
    "www-data",
    "wwwrun",
    "zabbix",
];

/// Words that are an account on some machines and a program on others.
const ACCOUNTS_AND_PROGRAMS: &[&str] = &[
    "airflow",
    "backup",
    "deploy",
    "elasticsearch",
    "git",
    "hadoop",
    "hdfs",
    "hive",
    "httpd",
    "list",
    "mail",
    "mailman",
    "man",
    "mysql",
    "news",
    "nginx",
    "postgres",
    "proxy",
    "redis",
    "spark",
    "squid",
    "sync",
    "vagrant",
    "yarn",
];

/// Shell builtins: no program takes them as its first argument.
const BUILTINS: &[&str] = &[
    ".", ":", "[", "[[", "case", "cd", "eval", "exec", "exit", "export", "for", "if", "set",
    "source", "test", "ulimit", "umask", "until", "while", "{",
];

/// Programs that are not accounts.
const PROGRAMS: &[&str] = &[
    "awk",
    "bash",
    "cat",
    "certbot",
    "chmod",
    "chown",
    "chronic",
    "command",
    "cp",
    "curl",
    "dash",
    "date",
    "docker",
    "echo",
    "env",
    "false",
    "find",
    "flock",
    "gzip",
    "ionice",
    "java",
    "kill",
    "ksh",
    "ln",
    "logger",
    "logrotate",
    "ls",
    "make",
    "mkdir",
    "mv",
    "mysqldump",
    "nice",
    "node",
    "nohup",
    "npm",
    "ntpdate",
    "perl",
    "pg_dump",
    "pg_dumpall",
    "php",
    "printf",
    "psql",
    "python",
    "python2",
    "python3",
    "rm",
    "rsync",
    "ruby",
    "run-parts",
    "scp",
    "sed",
    "service",
    "setsid",
    "sh",
    "sleep",
    "sqlplus",
    "ssh",
    "sudo",
    "supervisorctl",
    "systemctl",
    "tar",
    "time",
    "timeout",
    "touch",
    "true",
    "vacuumdb",
    "wget",
    "zsh",
];

/// Decides by the path where it is conclusive, then by the user's option, then by the lines.
pub(super) fn find_users(path: &str, text: &str, asked: Option<Users>) -> Result<Users, Undecided> {
    let path = path.replace('\\', "/");
    if let Some(users) = by_path(&path) {
        return match asked {
            Some(other) if other != users => {
                let what = match users {
                    Users::Named => "by its path its lines name users, and --user says otherwise",
                    Users::Own => {
                        "by its path its lines name no users, and --system says otherwise"
                    }
                };
                let fix = "import it without that flag, or under another path";
                Err(Undecided { line: 0, what: what.to_owned(), fix })
            }
            Some(_) | None => Ok(users),
        };
    }
    if let Some(users) = asked {
        return Ok(users);
    }
    let heading = text.lines().find_map(heading);
    heading.map_or_else(|| by_lines(&path, text), Ok)
}

/// The paths where crons expect files of each kind.
fn by_path(path: &str) -> Option<Users> {
    if path.ends_with("etc/crontab") || path.contains("etc/cron.d/") {
        return Some(Users::Named);
    }
    path.contains("spool/cron/").then_some(Users::Own)
}

/// The column heading that distributions write.
fn heading(line: &str) -> Option<Users> {
    let words: Vec<&str> = line.strip_prefix('#')?.split_whitespace().collect();
    let column = |name: &str| words.iter().position(|w| w.starts_with(name));
    let (dow, command) = (column("dow")?, column("command")?);
    match column("user") {
        Some(user) if dow < user && user < command => Some(Users::Named),
        Some(_) => None,
        None => (command == dow + 1).then_some(Users::Own),
    }
}

/// The evidence in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Users(Users),
    Unclear,
}

fn by_lines(path: &str, text: &str) -> Result<Users, Undecided> {
    let mut named: Option<u64> = None;
    let mut own: Option<u64> = None;
    let mut unclear: Option<(u64, String)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let Ok(CrontabLine::Entry(entry)) = CrontabLine::parse_line(line, Users::Own) else {
            continue;
        };
        match user_sign(&entry) {
            Sign::Users(Users::Named) => drop(named.get_or_insert(number)),
            Sign::Users(Users::Own) => drop(own.get_or_insert(number)),
            Sign::Unclear => {
                let word = entry.command.split_whitespace().next().unwrap_or_default();
                unclear.get_or_insert_with(|| (number, word.to_owned()));
            }
        }
    }
    match (named, own, unclear) {
        (Some(line), Some(other), _) => {
            let what = format!(
                "this line seems to name the user that it runs as, and line {other} seems to name none"
            );
            Err(Undecided { line, what, fix: SAY_WHICH })
        }
        (Some(_), None, _) => Ok(Users::Named),
        (None, Some(_), _) | (None, None, None) => Ok(Users::Own),
        (None, None, Some(_)) if path.contains("cron.d/") => Ok(Users::Named),
        (None, None, Some((line, word))) => {
            let what = format!(
                "{word:?} may be the user that this line runs as, or its command, and no line of this file says \
                 which"
            );
            Err(Undecided { line, what, fix: SAY_WHICH })
        }
    }
}

/// The evidence in the sixth and the seventh word.
fn user_sign(entry: &CrontabEntry) -> Sign {
    let mut words = entry.command.split_whitespace();
    let Some(sixth) = words.next() else { return Sign::Unclear };
    let Some(seventh) = words.next() else { return Sign::Users(Users::Own) };
    // FreeBSD: user:group, user/class.
    let account = sixth.split([':', '/']).next().unwrap_or(sixth);
    if ACCOUNTS.contains(&account) {
        return Sign::Users(Users::Named);
    }
    if !is_account_name(sixth) || BUILTINS.contains(&sixth) || PROGRAMS.contains(&sixth) {
        return Sign::Users(Users::Own);
    }
    if BUILTINS.contains(&seventh) {
        return Sign::Users(Users::Named);
    }
    // No command begins with this character, so the previous word is the command.
    if seventh.starts_with(['-', '<', '>', '|', '&', ';']) {
        return Sign::Users(Users::Own);
    }
    if ACCOUNTS_AND_PROGRAMS.contains(&sixth) && is_program(seventh) {
        return Sign::Users(Users::Named);
    }
    Sign::Unclear
}

/// Whether `useradd` permits the word as a name.
fn is_account_name(word: &str) -> bool {
    word.len() <= 32
        && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        && !word.ends_with(".sh")
        && !word.ends_with(".py")
        && !word.ends_with(".pl")
}

/// Whether the word is a known program, or a path in a directory of programs.
fn is_program(word: &str) -> bool {
    PROGRAMS.contains(&word)
        || (word.starts_with('/') && (word.contains("/bin/") || word.contains("/sbin/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Result<Users, u64> {
        find_users("copy", text, None).map_err(|undecided| undecided.line)
    }

    #[test]
    fn lines_say_whether_they_name_users() {
        for (text, wanted) in [
            ("0 1 * * * root /bin/a\n@daily root b\n", Ok(Users::Named)),
            ("0 1 * * * root /bin/a\n0 2 * * * ledger /opt/b\n", Ok(Users::Named)),
            ("0 1 * * * ledger cd /opt && ./b\n", Ok(Users::Named)),
            ("0 1 * * * root:wheel /bin/a\n", Ok(Users::Named)),
            ("0 1 * * * postgres pg_dump gl\n", Ok(Users::Named)),
            ("0 1 * * * mysql /usr/bin/mysqlcheck\n", Ok(Users::Named)),
            ("0 1 * * * mysql -e 'x'\n", Ok(Users::Own)),
            ("0 1 * * * mysql < x.sql\n", Ok(Users::Own)),
            ("0 1 * * * /bin/a root\n0 2 * * * ledger /opt/b\n", Ok(Users::Own)),
            ("0 1 * * * A=b cmd x\n", Ok(Users::Own)),
            ("0 1 * * * cd /x && y\n", Ok(Users::Own)),
            ("0 1 * * * backup.sh now\n", Ok(Users::Own)),
            ("0 1 * * * nightly\n", Ok(Users::Own)),
            ("@reboot curl x\n", Ok(Users::Own)),
            ("", Ok(Users::Own)),
            ("# m h dom mon dow user command\n0 1 * * * etl /bin/a\n", Ok(Users::Named)),
            ("# m h  dom mon dow   command\n0 1 * * * etl /bin/a\n", Ok(Users::Own)),
            ("\n0 1 * * * backup /data\n", Err(2)),
            ("0 1 * * * /bin/a x\n0 2 * * * root /bin/b\n", Err(2)),
        ] {
            assert_eq!(found(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn the_path_decides_first_then_the_user() {
        let text = "0 1 * * * backup /data\n";
        let by = |path: &str, asked| find_users(path, text, asked).map_err(|e| e.line);
        assert_eq!(by("/etc/crontab", Some(Users::Own)), Err(0));
        assert_eq!(by("/etc/crontab", Some(Users::Named)), Ok(Users::Named));
        assert_eq!(by("/var/spool/cron/etl", Some(Users::Named)), Err(0));
        assert_eq!(by("host/etc/cron.d/etl", None), Ok(Users::Named));
        assert_eq!(by("/var/spool/cron/crontabs/etl", None), Ok(Users::Own));
        assert_eq!(by("cron.d/etl", None), Ok(Users::Named));
        assert_eq!(by("etl", Some(Users::Own)), Ok(Users::Own));
        assert_eq!(by("etl", Some(Users::Named)), Ok(Users::Named));
        assert_eq!(by("etl", None), Err(1));
    }
}
