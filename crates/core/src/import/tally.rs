//! Counts what was read by outcome. The counts add up, because each item has exactly one outcome.

use crate::domain::text::lang::Lang;
use crate::import::note::{BilingualSentence, ImportOrigin, Level, Note};
use serde::Serialize;

/// The kind of item that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedKind {
    /// A line, task, node or row that runs something.
    Job,
    /// A trigger by time.
    Schedule,
    /// An XXL-JOB executor group.
    ExecutorGroup,
    /// A user of XXL-JOB.
    User,
}

impl CountedKind {
    /// Every kind, in the order of a report.
    pub const ALL: [Self; 4] = [Self::Job, Self::Schedule, Self::ExecutorGroup, Self::User];

    /// The display name.
    pub fn words(self, lang: Lang) -> &'static str {
        match self {
            Self::Job => lang.select("jobs", "作业"),
            Self::Schedule => lang.select("schedules", "调度"),
            Self::ExecutorGroup => lang.select("executor groups", "执行器组"),
            Self::User => lang.select("users", "用户"),
        }
    }
}

/// The outcome of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemOutcome {
    /// It is in the definition, without a note of its own.
    Carried,
    /// It is in the definition, and notes say what to check or what differs.
    Changed,
    /// It is not in the definition, or a placeholder job that fails takes its place.
    LeftOut,
}

impl ItemOutcome {
    /// Every outcome, best first.
    pub const ALL: [Self; 3] = [Self::Carried, Self::Changed, Self::LeftOut];

    /// The display name.
    pub fn words(self, lang: Lang) -> &'static str {
        match self {
            Self::Carried => lang.select("carried over", "已迁移"),
            Self::Changed => lang.select("carried over with changes", "迁移后有变化"),
            Self::LeftOut => lang.select("left out", "未迁移"),
        }
    }
}

/// An item that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadItem {
    pub kind: CountedKind,
    /// Its place in the source.
    pub origin: ImportOrigin,
    /// Its title in the source.
    pub title: String,
    pub outcome: ItemOutcome,
}

/// The number of items of a kind, by outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ItemCount {
    /// What is counted.
    pub kind: CountedKind,
    /// All items.
    pub read: usize,
    /// Items carried over unchanged.
    pub carried: usize,
    /// Items carried over with changes.
    pub changed: usize,
    /// Items left out.
    pub left_out: usize,
}

impl ItemCount {
    /// Counts the items of each kind that occurs.
    pub fn of_all(items: &[ReadItem]) -> Vec<Self> {
        let count = |kind: CountedKind| {
            let of =
                |outcome| items.iter().filter(|i| i.kind == kind && i.outcome == outcome).count();
            let (carried, changed) = (of(ItemOutcome::Carried), of(ItemOutcome::Changed));
            let left_out = of(ItemOutcome::LeftOut);
            Self { kind, read: carried + changed + left_out, carried, changed, left_out }
        };
        CountedKind::ALL.into_iter().map(count).filter(|count| count.read > 0).collect()
    }

    /// `jobs: 9 read = 7 carried over + 1 carried over with changes + 1 left out`
    pub fn line(&self, lang: Lang) -> String {
        let Self { kind, read, carried, changed, left_out } = self;
        let (kind, words) = (kind.words(lang), ItemOutcome::ALL.map(|o| o.words(lang)));
        match lang {
            Lang::En => format!(
                "{kind}: {read} read = {carried} {} + {changed} {} + {left_out} {}",
                words[0], words[1], words[2]
            ),
            Lang::Zh => format!(
                "{kind}:读取 {read} = {} {carried} + {} {changed} + {} {left_out}",
                words[0], words[1], words[2]
            ),
        }
    }
}

/// Identifies an item while its importer works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ItemId(usize);

/// An item whose outcome is still open.
#[derive(Clone, Debug)]
struct OpenItem {
    kind: CountedKind,
    origin: ImportOrigin,
    title: String,
    /// Whether the definition contains it.
    is_carried: bool,
    /// Whether a note concerns it.
    is_noted: bool,
    is_left_out: bool,
}

/// Everything that an importer has read, and its current item.
#[derive(Debug, Default)]
pub(crate) struct ImportTally {
    items: Vec<OpenItem>,
    current: Option<ItemId>,
}

impl ImportTally {
    /// Begins an item; the following notes and definitions belong to it.
    pub(crate) fn begin(
        &mut self,
        kind: CountedKind,
        origin: &ImportOrigin,
        title: &str,
    ) -> ItemId {
        let id = ItemId(self.items.len());
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        let origin = origin.clone();
        let (is_carried, is_noted, is_left_out) = (false, false, false);
        self.items.push(OpenItem { kind, origin, title, is_carried, is_noted, is_left_out });
        self.current = Some(id);
        id
    }

    /// Makes this item, or none, the current one.
    pub(crate) fn work_on(&mut self, item: Option<ItemId>) {
        self.current = item;
    }

    /// The current item.
    pub(crate) fn current(&self) -> Option<ItemId> {
        self.current
    }

    /// The current item, if it is of this kind.
    pub(crate) fn current_of(&self, kind: CountedKind) -> Option<ItemId> {
        self.current.filter(|id| self.items[id.0].kind == kind)
    }

    pub(crate) fn carry(&mut self, id: ItemId) {
        self.items[id.0].is_carried = true;
    }

    pub(crate) fn leave_out(&mut self, id: ItemId) {
        self.items[id.0].is_left_out = true;
    }

    pub(crate) fn add_note(&mut self, id: ItemId) {
        self.items[id.0].is_noted = true;
    }

    /// The outcome of each item, and a note for each missing item that has none.
    pub(crate) fn settle(self) -> (Vec<ReadItem>, Vec<Note>) {
        let mut notes = Vec::new();
        let mut items = Vec::with_capacity(self.items.len());
        for item in self.items {
            let outcome = match (item.is_carried && !item.is_left_out, item.is_noted) {
                (true, false) => ItemOutcome::Carried,
                (true, true) => ItemOutcome::Changed,
                (false, _) => ItemOutcome::LeftOut,
            };
            if outcome == ItemOutcome::LeftOut && !item.is_noted && !item.is_left_out {
                let kind = item.kind;
                notes.push(Note {
                    level: Level::LeftOut,
                    origin: item.origin.clone(),
                    about: item.title.clone(),
                    message: BilingualSentence::new(
                        format!("is not in the definition ({})", kind.words(Lang::En)),
                        format!("不在定义中({})", kind.words(Lang::Zh)),
                    ),
                    fix: BilingualSentence::default(),
                });
            }
            let (kind, origin, title) = (item.kind, item.origin, item.title);
            items.push(ReadItem { kind, origin, title, outcome });
        }
        (items, notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_has_one_outcome_and_none_is_missing_in_silence() {
        let at = ImportOrigin::new("f", 1);
        let mut tally = ImportTally::default();
        let carried = tally.begin(CountedKind::Job, &at, "a");
        tally.carry(carried);
        let changed = tally.begin(CountedKind::Job, &at, "b");
        tally.carry(changed);
        tally.add_note(changed);
        let replaced = tally.begin(CountedKind::Job, &at, "c");
        tally.carry(replaced);
        tally.leave_out(replaced);
        tally.begin(CountedKind::Schedule, &at, "forgotten");
        let (items, notes) = tally.settle();
        let counts = ItemCount::of_all(&items);
        let lines: Vec<String> = counts.iter().map(|c| c.line(Lang::En)).collect();
        assert_eq!(
            lines,
            [
                "jobs: 3 read = 1 carried over + 1 carried over with changes + 1 left out",
                "schedules: 1 read = 0 carried over + 0 carried over with changes + 1 left out",
            ]
        );
        assert_eq!(counts[0].line(Lang::Zh), "作业:读取 3 = 已迁移 1 + 迁移后有变化 1 + 未迁移 1");
        assert_eq!(notes.len(), 1);
        assert_eq!((notes[0].about.as_str(), notes[0].level), ("forgotten", Level::LeftOut));
    }
}
