//! Imports crontab(5): each line becomes a group, a job and a schedule, because each line runs independently.

mod line;
mod owner;

pub(super) use line::NICKNAMES;

use crate::domain::notification::recipient::Recipient;
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::schedule::{TimingWords, read_zone};
use crate::import::body::{quoted, text, title_of};
use crate::import::draft::Draft;
use crate::import::note::{ImportOrigin, Level};
use crate::import::schedule::SourceScheduleState;
use crate::import::tally::CountedKind;
use crate::import::{CrontabUsers as Users, Given};
use line::{CrontabEntry, CrontabLine, Extra, LineSchedule};
use owner::find_users;

/// Imports crontabs.
pub(crate) fn read_crontabs(given: &[Given], draft: &mut Draft) {
    for file in given {
        if let Some(text) = text(file, draft) {
            crontab(&file.path, text, draft);
        }
    }
    if draft.is_empty() && draft.is_sound() {
        let at = ImportOrigin::new(given.first().map_or("", |g| &g.path), 0);
        draft.fault(
            &at,
            "no line here starts anything by the clock",
            "give a crontab with entries",
        );
    }
}

/// The settings of the lines above an entry.
#[derive(Default)]
struct CrontabEnvironment {
    /// In the order of the file; of repeated names the last one counts.
    env: Vec<(String, String)>,
    comment: Option<String>,
}

impl CrontabEnvironment {
    fn get(&self, name: &str) -> Option<&str> {
        self.env.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    fn set_variable(&mut self, name: String, value: String) {
        self.env.retain(|(n, _)| *n != name);
        self.env.push((name, value));
    }
}

fn crontab(path: &str, text: &str, draft: &mut Draft) {
    let users = match find_users(path, text, draft.asked.crontab_users) {
        Ok(users) => users,
        Err(undecided) => {
            draft.fault(&ImportOrigin::new(path, undecided.line), undecided.what, undecided.fix);
            return;
        }
    };
    let mut around = CrontabEnvironment::default();
    let before = draft.defs.jobs.len();
    for (number, line) in (1..).zip(text.lines()) {
        let at = ImportOrigin::new(path, number);
        match CrontabLine::parse_line(line, users) {
            Ok(CrontabLine::Blank) => around.comment = None,
            Ok(CrontabLine::Comment(text)) => around.comment = text,
            Ok(CrontabLine::Set(name, value)) => {
                around.comment = None;
                setting(&at, &name, &value, draft);
                around.set_variable(name, value);
            }
            Ok(CrontabLine::Entry(found)) => {
                let title = around.comment.take();
                entry(&at, found, title, &around, draft);
            }
            Err((what, cure)) => draft.fault(&at, what, cure),
        }
    }
    if draft.defs.jobs.len() > before {
        of_the_whole(&ImportOrigin::new(path, 0), users, draft);
    }
}

/// Adds one note for what applies to every line of a file.
fn of_the_whole(at: &ImportOrigin, users: Users, draft: &mut Draft) {
    draft.note(
        Level::Differs,
        at, "",
        (
            "cron limits no run: time-outs are 30 days here, the longest there is; a time that was missed is \
             not made up for (misfire: skip), and runs may overlap (overlap: parallel), as with cron",
            "cron 不限制运行时长:此处超时设为上限 30 天;错过的时间不补跑(misfire: skip),\
             允许同时运行(overlap: parallel),与 cron 一致",
        ),
        ("set timeout_sec to what a run may take, and overlap: skip or queue where two at once do harm",
         "请将 timeout_sec 设为合理时长;不宜并行的请改用 overlap: skip 或 queue"),
    );
    draft.note(
        Level::Differs,
        at, "",
        (
            "cron mails whatever a run prints; here it is kept in the job's log, and mails tell of failures",
            "cron 会邮寄任务的全部输出;此处输出保存在作业日志中,邮件只通知失败",
        ),
        ("procession logs BATCH JOB shows it", "用 procession logs 批次 作业 查看"),
    );
    if draft.asked.zone.is_none() {
        draft.note(
            Level::Look,
            at, "",
            (
                "cron goes by the clock of its machine, which a crontab does not say: times here are UTC",
                "cron 使用所在机器的时区,crontab 中没有写明:此处时间按 UTC 计",
            ),
            ("import again with --zone, such as --zone Asia/Shanghai",
             "请加 --zone 重新导入,例如 --zone Asia/Shanghai"),
        );
    }
    if users == Users::Named {
        draft.note(
            Level::Look,
            at, "",
            (
                "its lines name the user they run as; scripts here run as the user of procession serve",
                "各行写明了运行用户;此处脚本以 procession serve 的用户运行",
            ),
            ("the tag user:NAME says which; run a node as that user and give its jobs worker: LABEL",
             "标签 user:名称 标明了用户;可用该用户运行一个节点,并为作业设置 worker: 标签"),
        );
    }
}

/// Handles variables with a meaning for cron itself.
fn setting(at: &ImportOrigin, name: &str, value: &str, draft: &mut Draft) {
    match name {
        "SHELL" if !is_shell(value) => draft.note(
            Level::Look,
            at,
            name,
            (
                format!("{value} is no interpreter that is set up here; the lines run with sh"),
                format!("{value} 不是已配置的解释器;各行用 sh 运行"),
            ),
            (
                "add it to [script.interpreters] of procession.toml and name it in interpreter",
                "请在 procession.toml 的 [script.interpreters] 中添加,并写入 interpreter",
            ),
        ),
        "CRON_TZ" if read_zone(value).is_err() => {
            let cure = "use an IANA name such as Asia/Shanghai";
            draft.fault(at, format!("CRON_TZ: time zone {value:?} is not known"), cure);
        }
        "RANDOM_DELAY" | "START_HOURS_RANGE" => draft.note(
            Level::LeftOut,
            at,
            name,
            (
                format!("{name}={value} is left out: times are exact here"),
                format!("{name}={value} 未迁移:此处时间是准确的"),
            ),
            ("", ""),
        ),
        "MAILFROM" | "CONTENT_TYPE" | "CONTENT_TRANSFER_ENCODING" => draft.note(
            Level::LeftOut,
            at,
            name,
            (
                format!("{name}={value} is left out: it is about mails with the output of a line"),
                format!("{name}={value} 未迁移:它只影响含输出的邮件"),
            ),
            (
                "[notify.email] of procession.toml says how mails are sent",
                "邮件的发送方式见 procession.toml 的 [notify.email]",
            ),
        ),
        "MAILTO" => note_mail_users(at, name, value, draft),
        _ => {}
    }
}

/// Mail goes to addresses here; cron also accepts local users.
fn note_mail_users(at: &ImportOrigin, name: &str, value: &str, draft: &mut Draft) {
    let words = value.split(',').map(str::trim).filter(|word| !word.is_empty());
    for word in words.filter(|word| Recipient::parse(word).is_err()) {
        draft.note(
            Level::Look,
            at,
            name,
            (
                format!("{word} is a user of that machine and no address"),
                format!("{word} 是该机器上的用户,不是邮件地址"),
            ),
            (
                "write an address into notify_email of these jobs",
                "请在这些作业的 notify_email 中填写地址",
            ),
        );
    }
}

fn is_shell(value: &str) -> bool {
    matches!(value.rsplit('/').next(), Some("sh" | "bash" | "dash"))
}

fn entry(
    at: &ImportOrigin,
    entry: CrontabEntry,
    comment: Option<String>,
    around: &CrontabEnvironment,
    draft: &mut Draft,
) {
    let title = comment.unwrap_or_else(|| title_of(&split_input(&entry.command).0));
    let title = if title.is_empty() { format!("line {}", at.line) } else { title };
    let schedule = draft.begin_item(CountedKind::Schedule, at, &title);
    let timing = timing(at, &entry.when, &title, draft);
    let job = draft.begin_item(CountedKind::Job, at, &title);
    let Some(timing) = timing else {
        // The note about its schedule gives the reason.
        draft.leave_item_out();
        draft.end_item();
        return;
    };
    draft.resume_item(schedule);
    let overlap = entry.overlaps().then_some(Overlap::Parallel);
    if let Some(random) = entry.random {
        draft.note(
            Level::Differs,
            at,
            &title,
            (
                format!(
                    "{random}: cron chooses a time at random; here it is the first of the range"
                ),
                format!("{random}:cron 会随机选取时间;此处取范围内的第一个"),
            ),
            ("", ""),
        );
    }
    draft.resume_item(job);
    for extra in &entry.extras {
        note_extra(at, &title, extra, draft);
    }
    let group = draft.group(&title);
    let mut job = draft.job(at, &group, &title, "SCRIPT");
    job.timeout_sec = draft.timeout(at, &title, 0);
    // A tag contains no control characters or separators; no user has such a name, but a line may be damaged.
    let is_odd = |c: char| c.is_control() || matches!(c, ',' | ';');
    job.tags.extend(entry.user.map(|user| format!("user:{}", user.replace(is_odd, "_"))));
    job.interpreter = Some(interpreter(around));
    job.notify_email = mail_recipients(around);
    job.script = Some(script(&entry.command, around));
    let zone = around.get("CRON_TZ").map(str::to_owned);
    let words = TriggerWords {
        code: title,
        name: Some(job.name.clone()),
        group: Some(group),
        timing: TimingWords { time_zone: zone, ..timing },
        misfire: Some(MisfirePolicy::Skip),
        overlap,
        ..TriggerWords::default()
    };
    draft.resume_item(schedule);
    draft.schedule(at, words, SourceScheduleState::On);
    draft.push(job);
    draft.end_item();
}

/// Reports parts that only some crons support.
fn note_extra(at: &ImportOrigin, title: &str, extra: &Extra, draft: &mut Draft) {
    let said = match extra {
        Extra::Group(group) => (
            format!(
                "{group} behind its user is left out: scripts run as the user of procession serve"
            ),
            format!("用户后的 {group} 未迁移:脚本以 procession serve 的用户运行"),
        ),
        Extra::Unlogged => (
            "the minus before its minutes is left out: each run is on record here".to_owned(),
            "分钟前的减号未迁移:此处每次运行都有记录".to_owned(),
        ),
        Extra::Flags(flags) => (
            format!(
                "{flags} before its command is left out: it is a flag of BSD's cron for mails, logs or overlaps"
            ),
            format!("命令前的 {flags} 未迁移:它是 BSD cron 关于邮件、日志或重叠运行的选项"),
        ),
    };
    let cure = match extra {
        Extra::Flags(flags) if flags.contains('s') => {
            ("overlap: skip on its schedule is what -s does", "调度的 overlap: skip 相当于 -s")
        }
        Extra::Flags(_) | Extra::Group(_) | Extra::Unlogged => ("", ""),
    };
    draft.note(Level::LeftOut, at, title, said, cure);
}

/// Translates the times of a line; `None`, with a note, if there is no equivalent.
fn timing(
    at: &ImportOrigin,
    when: &LineSchedule,
    title: &str,
    draft: &mut Draft,
) -> Option<TimingWords> {
    match when {
        LineSchedule::Reboot => {
            draft.note(
                Level::LeftOut,
                at,
                title,
                (
                    "@reboot: nothing here fires when a machine starts",
                    "@reboot:此处没有随机器启动的触发",
                ),
                ("make it a unit of systemd", "请改为 systemd 单元"),
            );
            None
        }
        LineSchedule::After(seconds) => {
            Some(TimingWords { delay_sec: Some(*seconds), ..TimingWords::default() })
        }
        LineSchedule::Cron(text) => {
            if let Err(error) = Cron::parse(text) {
                let cure = "cron refuses the whole file for such a line, too";
                draft.fault(at, error.to_string(), cure);
                return None;
            }
            Some(TimingWords { cron: Some(text.clone()), ..TimingWords::default() })
        }
    }
}

fn interpreter(around: &CrontabEnvironment) -> String {
    let shell = around.get("SHELL").and_then(|s| s.rsplit('/').next());
    shell.filter(|s| *s == "bash").unwrap_or("sh").to_owned()
}

fn mail_recipients(around: &CrontabEnvironment) -> Vec<String> {
    let words = around.get("MAILTO").unwrap_or_default().split(',').map(str::trim);
    words.filter(|w| !w.is_empty() && Recipient::parse(w).is_ok()).map(str::to_owned).collect()
}

/// The command as cron runs it: with the variables above it, in the user's home directory; the text after the first `%`
/// is its standard input.
fn script(command: &str, around: &CrontabEnvironment) -> String {
    let own = [
        "SHELL",
        "MAILTO",
        "MAILFROM",
        "CRON_TZ",
        "RANDOM_DELAY",
        "START_HOURS_RANGE",
        "CONTENT_TYPE",
        "CONTENT_TRANSFER_ENCODING",
    ];
    let mut script = String::new();
    for (name, value) in around.env.iter().filter(|(name, _)| !own.contains(&name.as_str())) {
        script.push_str(&format!("export {name}={}\n", quoted(value)));
    }
    script.push_str("cd \"${HOME:-/}\" || exit 1\n");
    let (command, input) = split_input(command);
    match input {
        None => script.push_str(&format!("{command}\n")),
        Some(input) => {
            let mut end = "END_OF_INPUT".to_owned();
            while input.lines().any(|line| line == end) {
                end.push('_');
            }
            script.push_str(&format!("{{\n{command}\n}} <<'{end}'\n{input}\n{end}\n"));
        }
    }
    script
}

/// Splits a command and its standard input: an unescaped `%` is a line break, and the first one ends the command.
fn split_input(text: &str) -> (String, Option<String>) {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'%') => part.extend(chars.next()),
            '%' => parts.push(std::mem::take(&mut part)),
            c => part.push(c),
        }
    }
    parts.push(part);
    let command = parts.remove(0);
    let input = (!parts.is_empty()).then(|| parts.join("\n"));
    (command, input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_begin_the_input() {
        for (text, command, input) in [
            ("date +\\%F", "date +%F", None),
            ("mail -s hi joe%Hello%Joe", "mail -s hi joe", Some("Hello\nJoe")),
            ("cat%", "cat", Some("")),
            ("a \\\\% b", "a \\% b", None),
            ("plain", "plain", None),
        ] {
            let found = split_input(text);
            assert_eq!((found.0.as_str(), found.1.as_deref()), (command, input), "{text}");
        }
    }
}
