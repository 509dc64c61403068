//! Derives codes from titles: from any text of another system to a unique and valid name.

use std::collections::HashMap;

/// The characters that a kind of name permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alphabet {
    /// Letters of any script: codes of groups, jobs and schedules.
    Any,
    /// ASCII: names of sources, hosts and parameters.
    Ascii,
}

/// Generates unique names of one kind. Names are case-insensitive, because some databases compare them so.
#[derive(Clone, Debug)]
pub struct NameMaker {
    alphabet: Alphabet,
    longest: usize,
    /// The name used for a title without any permitted character.
    bare: &'static str,
    taken: HashMap<String, u32>,
}

impl NameMaker {
    /// Codes of jobs.
    pub fn jobs() -> Self {
        Self::new(Alphabet::Any, 100, "job")
    }

    /// Codes of groups.
    pub fn groups() -> Self {
        Self::new(Alphabet::Any, 50, "group")
    }

    /// Codes of schedules.
    pub fn schedules() -> Self {
        Self::new(Alphabet::Any, 100, "schedule")
    }

    /// Names of data sources.
    pub fn sources() -> Self {
        Self::new(Alphabet::Ascii, 50, "source")
    }

    /// Names of hosts that are called over HTTP.
    pub fn hosts() -> Self {
        Self::new(Alphabet::Ascii, 50, "host")
    }

    fn new(alphabet: Alphabet, longest: usize, bare: &'static str) -> Self {
        Self { alphabet, longest, bare, taken: HashMap::new() }
    }

    /// A unique name derived from `title`: characters that are not permitted become `_`, and a
    /// number is appended if the name is taken.
    pub fn name(&mut self, title: &str) -> String {
        let base = self.fitting(title);
        let mut name = base.clone();
        while self.taken.contains_key(&name.to_lowercase()) {
            let count = self.taken.entry(base.to_lowercase()).or_insert(1);
            *count += 1;
            let end = format!("_{count}");
            let room = self.longest - end.len();
            name = base.chars().take(room).collect::<String>() + &end;
        }
        self.taken.entry(name.to_lowercase()).or_insert(1);
        name
    }

    /// `title` without the characters that no name permits.
    fn fitting(&self, title: &str) -> String {
        let mut made = String::new();
        for c in title.trim().chars() {
            let c = if self.may_have(c) { c } else { '_' };
            // A sequence of forbidden characters becomes one underscore.
            if c != '_' || !made.ends_with('_') || title.contains("__") {
                made.push(c);
            }
        }
        let made = made.trim_end_matches('_').trim_start_matches(|c: char| !c.is_alphanumeric());
        let mut made: String = made.chars().take(self.longest).collect();
        if made.is_empty() {
            made.push_str(self.bare);
        }
        made
    }

    fn may_have(&self, c: char) -> bool {
        match self.alphabet {
            Alphabet::Any => c.is_alphanumeric() || "_-.:".contains(c),
            Alphabet::Ascii => c.is_ascii_alphanumeric() || "_-".contains(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{GroupCode, JobCode, SourceName, TriggerCode};
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn titles_become_codes() {
        let mut names = NameMaker::jobs();
        for (title, code) in [
            ("GL_POST", "GL_POST"),
            ("月末 结账(总账)", "月末_结账_总账"),
            ("load accounts; rm -rf /", "load_accounts_rm_-rf"),
            ("/usr/bin/backup.sh --all", "usr_bin_backup.sh_--all"),
            ("gl_post", "gl_post_2"),
            ("GL_POST", "GL_POST_3"),
            ("gl_post_2", "gl_post_2_2"),
            ("", "job"),
            ("?!", "job_2"),
            ("-x", "x"),
            ("__init__", "init"),
            ("a__b", "a__b"),
        ] {
            assert_eq!(names.name(title), code, "{title:?}");
        }
        let mut names = NameMaker::sources();
        assert_eq!(names.name("总账库"), "source");
        assert_eq!(names.name("PG 生产 2"), "PG_2");
        assert_eq!(names.name("数据源"), "source_2");
    }

    proptest! {
        #[test]
        fn any_title_becomes_a_name_of_its_own(titles in proptest::collection::vec(".{0,30}", 0..12)) {
            let (mut jobs, mut groups) = (NameMaker::jobs(), NameMaker::groups());
            let (mut schedules, mut sources) = (NameMaker::schedules(), NameMaker::sources());
            let mut seen = HashSet::new();
            for title in titles.iter().chain(&titles) {
                let job = jobs.name(title);
                prop_assert!(JobCode::parse(&job).is_ok(), "{job:?}");
                prop_assert!(seen.insert(job.to_lowercase()));
                prop_assert!(GroupCode::parse(&groups.name(title)).is_ok());
                prop_assert!(TriggerCode::parse(&schedules.name(title)).is_ok());
                prop_assert!(SourceName::parse(&sources.name(title)).is_ok());
            }
        }

        #[test]
        fn long_titles_that_begin_alike_stay_apart(n in 2_usize..40) {
            let mut names = NameMaker::groups();
            let all: HashSet<String> = (0..n).map(|_| names.name(&"月".repeat(80))).collect();
            prop_assert_eq!(all.len(), n);
            for name in all {
                prop_assert!(GroupCode::parse(&name).is_ok(), "{}", name);
            }
        }
    }
}
