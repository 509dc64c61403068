//! Each key of each format has an effect: it changes the definition, or a note reports it. Unknown keys are reported
//! too.

mod airflow;
mod azkaban;
pub(super) mod columns;
mod control_m;
mod crontab;
mod dolphin;
mod pg_timetable;
mod quartz;
mod sql_server;
mod xxl_job;

use super::{given, import_files};
use crate::import::keys::KnownKey;
use crate::import::{Given, System};
use std::collections::{BTreeMap, BTreeSet};

/// A key and a value with an effect.
type Sample<'a> = (&'a str, &'a str);

/// A map within a file, of which every key is tested.
struct KeyCase<'a> {
    system: System,
    path: &'a str,
    /// The tables with its keys.
    tables: &'a [&'a [KnownKey]],
    /// The file that surrounds a map.
    around: &'a dyn Fn(&str) -> String,
    /// The entries that the map always has.
    base: &'a [Sample<'a>],
    /// A value for each key, different from that in `base`.
    samples: &'a [Sample<'a>],
    /// An alternative name of a key, and the key of `base` that is removed for its test.
    aliases: &'a [(&'a str, &'a str)],
}

impl KeyCase<'_> {
    fn text(&self, more: Option<&Sample<'_>>) -> String {
        let mut map: BTreeMap<&str, &str> = self.base.iter().copied().collect();
        let alias = self.aliases.iter().find(|(alias, _)| more.is_some_and(|m| m.0 == *alias));
        if let Some((_, key)) = alias {
            map.remove(key);
        }
        map.extend(more.copied());
        let pairs: Vec<String> =
            map.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
        (self.around)(&format!("{{{}}}", pairs.join(", ")))
    }

    fn heard(&self, more: Option<&Sample<'_>>) -> String {
        heard(self.system, &[given(self.path, &self.text(more))])
    }

    fn assert_each_key_is_heard(&self) {
        let known: BTreeSet<&str> =
            self.tables.iter().flat_map(|table| table.iter()).map(|known| known.name).collect();
        let tried: BTreeSet<&str> = self.samples.iter().map(|(key, _)| *key).collect();
        assert_eq!(known, tried, "each known key has a sample, and no other");
        let before = self.heard(None);
        assert!(!before.starts_with("refused"), "{before}\n{}", self.text(None));
        for sample in self.samples {
            let (key, value) = sample;
            assert_ne!(self.heard(Some(sample)), before, "{key}: {value} is ignored");
        }
        let unknown = self.heard(Some(&("zz_unknown", "1")));
        assert!(unknown.contains("zz_unknown"), "an unknown key is ignored\n{unknown}");
    }
}

/// The definition and the notes without places, which a longer text would move.
fn heard(system: System, files: &[Given]) -> String {
    match import_files(system, files) {
        Ok(made) => {
            let notes: Vec<String> = made
                .notes
                .iter()
                .map(|n| format!("{:?} {} {} {}", n.level, n.about, n.message.en, n.fix.en))
                .collect();
            format!("{}\n{}\n{:?}", made.text, notes.join("\n"), made.files)
        }
        Err(error) => format!("refused: {error}"),
    }
}
