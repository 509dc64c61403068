//! J2: what bodies were told of themselves: one key per job over all attempts, attempts that there were.

use super::{Crime, Effect, Judge, Name, Phase, Records, Violation};
use std::collections::{BTreeMap, BTreeSet};

/// What this judge finds.
pub(super) fn judge(records: &Records<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut owners = BTreeMap::<&str, &Name>::new();
    for wanted in &records.history.wanted {
        let effects = records.effects.get(&wanted.name).map_or(&[][..], Vec::as_slice);
        let row = records.rows.get(&wanted.name);
        let (attempts, runs) = row.map_or((0, 0), |row| (row.attempt, row.run_no));
        let mut report = |said: String| {
            let name = wanted.name.clone();
            let (judge, crime) = (Judge::Labels, Crime::Mislabelled);
            found.push(Violation { judge, crime, class: wanted.class, name, said });
        };
        let keys: BTreeSet<&str> = effects.iter().map(|e| e.key.as_str()).collect();
        if keys.len() > runs as usize && !keys.is_empty() {
            report(format!("{} keys in {runs} runs: {keys:?}", keys.len()));
        }
        for key in keys {
            if let Some(other) = owners.insert(key, &wanted.name) {
                report(format!("its key {key} is {}/{}'s too", other.0, other.1));
            }
        }
        let told = effects.iter().filter_map(|effect| effect.attempt);
        for attempt in told.filter(|attempt| *attempt == 0 || *attempt > attempts) {
            report(format!("attempt {attempt} of {attempts}"));
        }
        for end in effects.iter().filter(|e| e.phase == Phase::End) {
            if !effects.iter().any(|e| begins(e, end)) {
                report(format!("life {} ended and never began", end.life));
            }
        }
    }
    found
}

fn begins(begin: &Effect, end: &Effect) -> bool {
    begin.phase == Phase::Begin
        && (&begin.key, &begin.life) == (&end.key, &end.life)
        && begin.attempt == end.attempt
}
