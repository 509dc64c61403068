//! Parts of bodies shared by importers: quoted words, placeholder jobs, texts of files.

use crate::domain::id::{GroupCode, JobType};
use crate::domain::job::JobDef;
use crate::import::Given;
use crate::import::draft::Draft;
use crate::import::note::{BilingualSentence, ImportOrigin, Level};

/// Quotes a word for a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Whether a word is a valid parameter name.
pub(crate) fn is_parameter_name(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Text that is safe in a comment of a script.
pub(crate) fn in_comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The text of a file; invalid UTF-8 is a fault at its line.
pub(crate) fn text<'a>(given: &'a Given, draft: &mut Draft) -> Option<&'a str> {
    match std::str::from_utf8(&given.bytes) {
        Ok(text) => Some(text.strip_prefix('\u{FEFF}').unwrap_or(text)),
        Err(error) => {
            let before = &given.bytes[..error.valid_up_to()];
            let line = before.iter().filter(|b| **b == b'\n').count() as u64 + 1;
            let at = ImportOrigin::new(&given.path, line);
            draft.fault(&at, "this is not UTF-8", "save the file as UTF-8: iconv -f GBK -t UTF-8");
            None
        }
    }
}

/// A placeholder for a job that cannot be imported: its dependents keep waiting for it, and it
/// fails with an explanation, because nothing must look as if it had run.
pub(crate) fn stand_in(
    draft: &mut Draft,
    at: &ImportOrigin,
    group: &GroupCode,
    title: &str,
    why: &BilingualSentence,
) -> JobDef {
    let job = draft.job(at, group, title, "SCRIPT");
    failing(draft, at, job, why)
}

/// The same for a job that already has its code.
pub(crate) fn failing(
    draft: &mut Draft,
    at: &ImportOrigin,
    mut job: JobDef,
    why: &BilingualSentence,
) -> JobDef {
    job.job_type = JobType::parse("SCRIPT").expect("a word of ours");
    let said = in_comment(&format!("{}: not carried over ({at}): {}", job.code, why.en));
    job.interpreter = Some("sh".to_owned());
    job.script = Some(format!("echo {} >&2\nexit 1\n", quoted(&said)));
    let cure = (
        "a job that always fails stands in its place; write its body, or set is_active: false after \
         taking it out of the dependencies",
        "其位置由一个必定失败的作业占据;请填写其内容,或从依赖中移除后设为 is_active: false",
    );
    let code = job.code.to_string();
    draft.note(Level::LeftOut, at, &code, why.clone(), cure);
    draft.leave_item_out();
    job
}

/// The program name: the last part of its path.
pub(crate) fn base_name(word: &str) -> &str {
    word.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or(word)
}

/// The title of a command: its program, or the script that an interpreter or a wrapper runs.
pub(crate) fn title_of(command: &str) -> String {
    const WRAPPERS: &[&str] = &[
        "sudo", "nice", "ionice", "nohup", "env", "exec", "sh", "bash", "zsh", "ksh", "dash",
        "python", "python3", "python2", "perl", "php", "ruby", "java", "node", "flock", "timeout",
        "chronic", "test", "cd", "command", "setsid", "time", "[", "then", "if", "root", "&&",
        "||", ";", "{", "(", "!",
    ];
    let words = command.split([' ', '\t', ';', '|', '&', '(', ')', '`']);
    let told = words.map(|w| w.trim_matches(['"', '\''])).filter(|w| {
        let program = base_name(w);
        !w.is_empty()
            && !w.starts_with('-')
            && !w.contains(['=', '$', '>', '<'])
            && !w.starts_with(|c: char| c.is_ascii_digit())
            && !WRAPPERS.contains(&program)
            && program.chars().any(char::is_alphanumeric)
    });
    // A directory or file after `cd` and `test` is no title; a later word is better.
    let mut all: Vec<&str> = told.collect();
    if ["cd ", "test ", "[ ", "flock "].iter().any(|w| command.trim_start().starts_with(w))
        && all.len() > 1
    {
        all.remove(0);
    }
    let name = all.first().map_or("", |w| base_name(w));
    let stem = name.rsplit_once('.').filter(|(stem, end)| !stem.is_empty() && end.len() <= 4);
    stem.map_or(name, |(stem, _)| stem).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_called_after_what_they_run() {
        for (command, title) in [
            ("/usr/local/bin/backup.sh --all", "backup"),
            ("cd /srv/app && ./bin/nightly run", "nightly"),
            ("test -x /usr/sbin/anacron || run-parts /etc/cron.daily", "run-parts"),
            ("PGPASSWORD=x /usr/bin/psql -c 'SELECT 1'", "psql"),
            ("/usr/bin/env python3 /opt/etl/load_gl.py 2024", "load_gl"),
            ("flock -n /tmp/a.lock /opt/report.sh", "report"),
            ("sudo -u postgres vacuumdb --all", "postgres"),
            ("sh -c 'echo hi'", "echo"),
            ("$HOME/run", ""),
            ("", ""),
        ] {
            assert_eq!(title_of(command), title, "{command}");
        }
    }

    #[test]
    fn quoted_words_are_one_word() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
