//! Parses one line of a crontab.

use crate::import::CrontabUsers as Users;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CrontabLine {
    Blank,
    /// With its text, which may be the title of the lines below.
    Comment(Option<String>),
    /// A variable.
    Set(String, String),
    Entry(CrontabEntry),
}

/// An entry: when it runs, and its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CrontabEntry {
    pub(super) when: LineSchedule,
    pub(super) user: Option<String>,
    pub(super) command: String,
    /// A field whose value cron chooses at random, as written.
    pub(super) random: Option<String>,
    /// Parts of the line that are not carried over, as written.
    pub(super) extras: Vec<Extra>,
}

/// A part that only some crons support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Extra {
    /// FreeBSD: the group or login class after the user.
    Group(String),
    /// cronie: a minus before the minutes keeps the line out of cron's log.
    Unlogged,
    /// BSD: `-n`, `-q`, `-s` before the command.
    Flags(String),
}

impl CrontabEntry {
    /// Whether cron starts the command while an earlier run is active.
    pub(super) fn overlaps(&self) -> bool {
        !matches!(self.when, LineSchedule::After(_))
    }
}

/// When a line runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineSchedule {
    /// A cron expression of five fields.
    Cron(String),
    /// `@30`: this many seconds after the end of the last run.
    After(i64),
    /// At the start of the machine.
    Reboot,
}

pub(in crate::import) const NICKNAMES: [(&str, &str); 8] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
    ("@every_minute", "* * * * *"),
];

/// The problem and a hint.
type CrontabFault = (String, &'static str);

impl CrontabLine {
    pub(super) fn parse_line(line: &str, users: Users) -> Result<Self, CrontabFault> {
        let line = line.trim_start();
        if line.trim().is_empty() {
            return Ok(Self::Blank);
        }
        if let Some(comment) = line.strip_prefix('#') {
            return Ok(Self::Comment(title(comment)));
        }
        if let Some((name, value)) = setting(line) {
            return Ok(Self::Set(name, value));
        }
        entry(line, users).map(Self::Entry)
    }
}

/// The title in a comment; column headings, rulers and disabled entries are not titles.
fn title(comment: &str) -> Option<String> {
    let text = comment.trim_matches(|c: char| c.is_whitespace() || "#-=*".contains(c));
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let is_heading = text.contains("dow") || text.contains("day of month") || text.starts_with('|');
    let is_switched_off =
        matches!(CrontabLine::parse_line(comment, Users::Own), Ok(CrontabLine::Entry(_)));
    let is_title = letters >= 2 && !is_heading && !is_switched_off;
    is_title.then(|| text.chars().take(80).collect())
}

/// `NAME = value`, with or without quotes.
fn setting(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let name = unquoted(name.trim());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name.to_owned(), unquoted(value.trim()).to_owned()))
}

fn unquoted(text: &str) -> &str {
    let pair = |q: char| text.strip_prefix(q).and_then(|t| t.strip_suffix(q));
    pair('"').or_else(|| pair('\'')).unwrap_or(text)
}

fn entry(line: &str, users: Users) -> Result<CrontabEntry, CrontabFault> {
    let mut rest = line;
    let (when, random) =
        if line.starts_with('@') { nickname(&mut rest)? } else { fields(&mut rest)? };
    let mut extras = Vec::new();
    if line.starts_with('-') {
        extras.push(Extra::Unlogged);
    }
    let user = match users {
        Users::Own => None,
        Users::Named => {
            let user = next_word(&mut rest).unwrap_or_default();
            let name = user.split([':', '/']).next().unwrap_or_default();
            if name.len() < user.len() {
                extras.push(Extra::Group(user[name.len()..].to_owned()));
            }
            Some(name.to_owned()).filter(|u| !u.is_empty())
        }
    };
    while let Some(flags) = flags(rest) {
        extras.push(Extra::Flags(flags.to_owned()));
        next_word(&mut rest);
    }
    let command = rest.trim_start().to_owned();
    if command.trim().is_empty() {
        let cure = "write minute hour day month weekday command, or take the line out";
        return Err(("this line has no command".to_owned(), cure));
    }
    Ok(CrontabEntry { when, user, command, random, extras })
}

/// The BSD cron flags at the start of a command; no program has such a name.
fn flags(rest: &str) -> Option<&str> {
    let first = rest.split_whitespace().next()?;
    let letters = first.strip_prefix('-')?;
    (!letters.is_empty() && letters.chars().all(|c| "nqs".contains(c))).then_some(first)
}

fn next_word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    *rest = &text[end..];
    (end > 0).then(|| &text[..end])
}

type LineTiming = (LineSchedule, Option<String>);

fn nickname(rest: &mut &str) -> Result<LineTiming, CrontabFault> {
    let name = next_word(rest).unwrap_or_default().to_ascii_lowercase();
    if name == "@reboot" {
        return Ok((LineSchedule::Reboot, None));
    }
    if let Ok(seconds) = name[1..].parse::<i64>()
        && seconds > 0
    {
        return Ok((LineSchedule::After(seconds), None));
    }
    let known = NICKNAMES.iter().find(|(nick, _)| *nick == name);
    known.map(|(_, five)| (LineSchedule::Cron((*five).to_owned()), None)).ok_or_else(|| {
        let cure = "known are @yearly, @monthly, @weekly, @daily, @hourly and @reboot";
        (format!("{name} is no time that cron knows"), cure)
    })
}

fn fields(rest: &mut &str) -> Result<LineTiming, CrontabFault> {
    let mut five = Vec::new();
    let mut random = None;
    while five.len() < 5 {
        let Some(field) = next_word(rest) else {
            let cure = "write minute hour day month weekday command, or take the line out";
            return Err((format!("this line has {} of five time fields", five.len()), cure));
        };
        // cronie: a minus before the minutes keeps the line out of its log.
        let field = if five.is_empty() { field.strip_prefix('-').unwrap_or(field) } else { field };
        if field.contains('~') {
            random.get_or_insert_with(|| field.to_owned());
        }
        let low = if five.len() == 2 || five.len() == 3 { "1" } else { "0" };
        let parts = field.split(',').map(|part| match part.split_once('~') {
            Some(("", _)) => low.to_owned(),
            Some((first, _)) => first.to_owned(),
            None => part.to_owned(),
        });
        five.push(parts.collect::<Vec<_>>().join(","));
    }
    Ok((LineSchedule::Cron(five.join(" ")), random))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(line: &str) -> String {
        match CrontabLine::parse_line(line, Users::Own) {
            Ok(CrontabLine::Entry(CrontabEntry { when: LineSchedule::Cron(text), .. })) => text,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn times_are_read_as_cron_reads_them() {
        assert_eq!(when("5 4 * * sun  echo"), "5 4 * * sun");
        assert_eq!(when("-5 4 1,15 * fri echo"), "5 4 1,15 * fri");
        assert_eq!(when("0~59 ~ ~ * * echo"), "0 0 1 * *");
        assert_eq!(when("@Daily echo"), "0 0 * * *");
        assert!(when("5 4 * *").contains("4 of five"), "{}", when("5 4 * *"));
        assert!(when("5 4 * * *").contains("no command"));
        assert!(when("@noon x").contains("no time that cron knows"));
        assert!(when("@30 x").contains("After(30)"));
    }

    #[test]
    fn variables_are_no_entries() {
        let set = |l: &str| match CrontabLine::parse_line(l, Users::Own) {
            Ok(CrontabLine::Set(name, value)) => format!("{name}|{value}"),
            other => format!("{other:?}"),
        };
        assert_eq!(set("PATH=/bin:/usr/bin"), "PATH|/bin:/usr/bin");
        assert_eq!(set("  MAILTO = \"a@b.example\" "), "MAILTO|a@b.example");
        assert_eq!(set("X='a b'"), "X|a b");
        assert!(set("0 1 * * * A=b cmd").contains("Entry"));
    }

    #[test]
    fn comments_that_are_titles() {
        let title = |l: &str| match CrontabLine::parse_line(l, Users::Own) {
            Ok(CrontabLine::Comment(title)) => title,
            other => panic!("{other:?}"),
        };
        assert_eq!(title("# 总账夜间备份").as_deref(), Some("总账夜间备份"));
        assert_eq!(title("#--- backup ---").as_deref(), Some("backup"));
        assert_eq!(title("# m h dom mon dow command"), None);
        assert_eq!(title("#0 1 * * * /bin/old"), None);
        assert_eq!(title("########"), None);
    }
}
