//! When a job may start, seen from its parents: the condition on each edge, the rule over all.
//!
//! The rules are Airflow's names; what a skip does is settled here once. Two kinds of skip exist: an
//! operator's ("go on without it": counts as success) and a branch that was not taken (neutral: a
//! child is skipped too when all its parents were).

use crate::domain::job::queue::QueueStatus;
use crate::domain::value::expr::Expr;
use serde::{Deserialize, Serialize};

/// How a job's parents together let it start.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "snake_case")]
pub enum TriggerRule {
    /// Every parent ended well.
    #[default]
    AllSuccess,
    /// Every parent has ended, well or not.
    AllDone,
    /// One parent ended well; the others are not waited for.
    OneSuccess,
    /// Every parent failed.
    AllFailed,
    /// One parent failed; the others are not waited for.
    OneFailed,
    /// Every parent has ended and none failed.
    NoneFailed,
}

impl TriggerRule {
    /// Every rule, in the order in which documents list them.
    pub const ALL: [Self; 6] = [
        Self::AllSuccess,
        Self::AllDone,
        Self::OneSuccess,
        Self::AllFailed,
        Self::OneFailed,
        Self::NoneFailed,
    ];

    /// The word in a definition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllSuccess => "all_success",
            Self::AllDone => "all_done",
            Self::OneSuccess => "one_success",
            Self::AllFailed => "all_failed",
            Self::OneFailed => "one_failed",
            Self::NoneFailed => "none_failed",
        }
    }

    /// The rule a word means.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == word)
    }

    /// Whether edges of a job with this rule may carry conditions of their own. The other rules
    /// speak of success and failure themselves, and a condition beside them would contradict them.
    pub fn takes_conditions(self) -> bool {
        matches!(self, Self::AllSuccess | Self::OneSuccess)
    }
}

impl std::fmt::Display for TriggerRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// What one edge asks of its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(try_from = "String", into = "String")]
pub enum EdgeCondition {
    /// It ended well.
    #[default]
    Success,
    /// It failed.
    Failure,
    /// It has ended.
    Done,
    /// It was skipped, by an operator or as a branch not taken.
    Skipped,
    /// It ended well and the expression on its outputs is true.
    Output(Box<Expr>),
}

impl EdgeCondition {
    /// The condition a word or an expression means.
    pub fn parse(text: &str) -> Result<Self, crate::domain::value::expr::ExprError> {
        Ok(match text.trim() {
            "success" => Self::Success,
            "failure" => Self::Failure,
            "done" => Self::Done,
            "skipped" => Self::Skipped,
            text => Self::Output(Box::new(Expr::parse(text)?)),
        })
    }
}

impl TryFrom<String> for EdgeCondition {
    type Error = crate::domain::value::expr::ExprError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<EdgeCondition> for String {
    fn from(when: EdgeCondition) -> Self {
        when.to_string()
    }
}

// An expression by its text, which is what it is in a table and a file.
impl std::hash::Hash for EdgeCondition {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        if let Self::Output(expr) = self {
            expr.to_string().hash(state);
        }
    }
}

impl std::fmt::Display for EdgeCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Success => f.pad("success"),
            Self::Failure => f.pad("failure"),
            Self::Done => f.pad("done"),
            Self::Skipped => f.pad("skipped"),
            Self::Output(expr) => write!(f, "{expr}"),
        }
    }
}

/// What an edge says once its parent is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edge {
    /// Its condition holds.
    Met,
    /// Its parent failed where success was asked for.
    Failed,
    /// Its own condition does not hold: this branch is not taken.
    Unmet,
    /// Its parent was a branch not taken.
    Neutral,
    /// Whether its parent took effect is not known.
    Lost,
}

/// What an edge with condition `when` says of a parent that ended in `parent`; `holds` answers for
/// the expression. `None` while the parent is not final.
pub fn evaluate_edge(
    when: &EdgeCondition,
    parent: QueueStatus,
    holds: impl FnOnce(&Expr) -> bool,
) -> Option<Edge> {
    use QueueStatus as S;
    if !parent.is_final() {
        return None;
    }
    let well = parent.lets_children_run();
    let not_taken = parent == S::NotTaken;
    let lost = parent == S::Unknown;
    let verdict = match when {
        EdgeCondition::Done => Edge::Met,
        EdgeCondition::Skipped if not_taken || parent == S::Skipped => Edge::Met,
        EdgeCondition::Skipped if lost => Edge::Lost,
        EdgeCondition::Skipped => Edge::Unmet,
        _ if not_taken => Edge::Neutral,
        _ if lost => Edge::Lost,
        EdgeCondition::Success if well => Edge::Met,
        EdgeCondition::Success => Edge::Failed,
        EdgeCondition::Failure if well => Edge::Unmet,
        EdgeCondition::Failure => Edge::Met,
        EdgeCondition::Output(expr) if well && holds(expr) => Edge::Met,
        EdgeCondition::Output(_) if well => Edge::Unmet,
        EdgeCondition::Output(_) => Edge::Failed,
    };
    Some(verdict)
}

/// How many of a job's edges say what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeTally {
    /// Parents that are not final yet.
    pub open: u32,
    /// Conditions that hold.
    pub met: u32,
    /// Parents that failed.
    pub failed: u32,
    /// Conditions that do not hold.
    pub unmet: u32,
    /// Parents not taken.
    pub neutral: u32,
    /// Parents of unknown outcome.
    pub lost: u32,
}

/// What becomes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TriggerDecision {
    /// It may start.
    Run,
    /// It can never start: UPSTREAM_FAILED.
    Fail,
    /// Its branch is not taken: SKIPPED.
    NotTaken,
}

impl EdgeTally {
    /// Counts one more edge that has spoken.
    pub fn count_edge(&mut self, edge: Edge) {
        self.open = self.open.saturating_sub(1);
        match edge {
            Edge::Met => self.met += 1,
            Edge::Failed => self.failed += 1,
            Edge::Unmet => self.unmet += 1,
            Edge::Neutral => self.neutral += 1,
            Edge::Lost => self.lost += 1,
        }
    }

    /// What `rule` makes of it; `None` while it waits. The answer never depends on the order in
    /// which the parents ended: an early answer is given only where no later edge could change it.
    pub fn decide(&self, rule: TriggerRule) -> Option<TriggerDecision> {
        let Self { open, met, failed, unmet, neutral, lost } = *self;
        if met + failed + unmet + neutral + lost + open == 0 {
            return Some(TriggerDecision::Run);
        }
        let bad = failed + lost > 0;
        let (run, fail, not_taken) = (
            Some(TriggerDecision::Run),
            Some(TriggerDecision::Fail),
            Some(TriggerDecision::NotTaken),
        );
        match rule {
            TriggerRule::AllSuccess | TriggerRule::NoneFailed if bad => fail,
            TriggerRule::OneSuccess if met > 0 => run,
            TriggerRule::OneFailed if failed > 0 => run,
            TriggerRule::AllSuccess
            | TriggerRule::AllDone
            | TriggerRule::OneSuccess
            | TriggerRule::AllFailed
            | TriggerRule::OneFailed
            | TriggerRule::NoneFailed
                if open > 0 =>
            {
                None
            }
            TriggerRule::AllSuccess if unmet > 0 || met == 0 => not_taken,
            TriggerRule::AllSuccess | TriggerRule::NoneFailed => run,
            TriggerRule::AllDone if met + failed + lost == 0 => not_taken,
            TriggerRule::AllDone => run,
            TriggerRule::OneSuccess if bad => fail,
            TriggerRule::OneSuccess => not_taken,
            TriggerRule::AllFailed if lost > 0 => fail,
            TriggerRule::AllFailed if failed > 0 && met + unmet == 0 => run,
            TriggerRule::AllFailed => not_taken,
            TriggerRule::OneFailed if lost > 0 => fail,
            TriggerRule::OneFailed => not_taken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use QueueStatus as S;

    /// The written table of docs/dependencies.md, one cell each: what an edge says of its parent.
    #[test]
    fn every_cell_of_the_edge_table() {
        use Edge::{Failed, Lost, Met, Neutral, Unmet};
        let output = EdgeCondition::parse("n > 0").expect("expression");
        let columns = [
            EdgeCondition::Success,
            EdgeCondition::Failure,
            EdgeCondition::Done,
            EdgeCondition::Skipped,
            output,
        ];
        // For the last column the expression is true, then false.
        #[rustfmt::skip]
        let table = [
            (S::Success,        [Met,     Unmet,   Met, Unmet, Met,     Unmet]),
            (S::Warning,        [Met,     Unmet,   Met, Unmet, Met,     Unmet]),
            (S::Forced,         [Met,     Unmet,   Met, Unmet, Met,     Unmet]),
            (S::Skipped,        [Met,     Unmet,   Met, Met,   Met,     Unmet]),
            (S::NotTaken,       [Neutral, Neutral, Met, Met,   Neutral, Neutral]),
            (S::Failed,         [Failed,  Met,     Met, Unmet, Failed,  Failed]),
            (S::Timeout,        [Failed,  Met,     Met, Unmet, Failed,  Failed]),
            (S::Killed,         [Failed,  Met,     Met, Unmet, Failed,  Failed]),
            (S::UpstreamFailed, [Failed,  Met,     Met, Unmet, Failed,  Failed]),
            (S::Unknown,        [Lost,    Lost,    Met, Lost,  Lost,    Lost]),
        ];
        for (parent, cells) in &table {
            for (when, cell) in columns.iter().zip(cells) {
                assert_eq!(
                    evaluate_edge(when, *parent, |_| true),
                    Some(*cell),
                    "{when} of {parent:?}"
                );
            }
            assert_eq!(
                evaluate_edge(&columns[4], *parent, |_| false),
                Some(cells[5]),
                "false: {parent:?}"
            );
        }
        for open in S::ALL.into_iter().filter(|s| !s.is_final()) {
            assert_eq!(evaluate_edge(&EdgeCondition::Done, open, |_| true), None);
        }
        assert_eq!(table.len(), S::ALL.into_iter().filter(|s| s.is_final()).count());
    }

    /// The second written table: what a rule makes of its edges once all have spoken. Each letter is
    /// an edge: m met, f failed, u unmet, n neutral, l lost.
    #[test]
    fn every_cell_of_the_rule_table() {
        #[rustfmt::skip]
        let table = [
            //         success done    one_s   all_f   one_f   none_f
            ("",      ["run",  "run",  "run",  "run",  "run",  "run"]),
            ("m",     ["run",  "run",  "run",  "skip", "skip", "run"]),
            ("f",     ["fail", "run",  "fail", "run",  "run",  "fail"]),
            ("u",     ["skip", "skip", "skip", "skip", "skip", "run"]),
            ("n",     ["skip", "skip", "skip", "skip", "skip", "run"]),
            ("l",     ["fail", "run",  "fail", "fail", "fail", "fail"]),
            ("mm",    ["run",  "run",  "run",  "skip", "skip", "run"]),
            ("mf",    ["fail", "run",  "run",  "skip", "run",  "fail"]),
            ("mu",    ["skip", "run",  "run",  "skip", "skip", "run"]),
            ("mn",    ["run",  "run",  "run",  "skip", "skip", "run"]),
            ("ml",    ["fail", "run",  "run",  "fail", "fail", "fail"]),
            ("ff",    ["fail", "run",  "fail", "run",  "run",  "fail"]),
            ("fu",    ["fail", "run",  "fail", "skip", "run",  "fail"]),
            ("fn",    ["fail", "run",  "fail", "run",  "run",  "fail"]),
            ("fl",    ["fail", "run",  "fail", "fail", "run",  "fail"]),
            ("un",    ["skip", "skip", "skip", "skip", "skip", "run"]),
            ("nn",    ["skip", "skip", "skip", "skip", "skip", "run"]),
        ];
        for (edges, cells) in table {
            let mut tally = EdgeTally { open: edges.len() as u32, ..EdgeTally::default() };
            for letter in edges.chars() {
                tally.count_edge(match letter {
                    'm' => Edge::Met,
                    'f' => Edge::Failed,
                    'u' => Edge::Unmet,
                    'n' => Edge::Neutral,
                    _ => Edge::Lost,
                });
            }
            for (rule, cell) in TriggerRule::ALL.into_iter().zip(cells) {
                let said = match tally.decide(rule) {
                    Some(TriggerDecision::Run) => "run",
                    Some(TriggerDecision::Fail) => "fail",
                    Some(TriggerDecision::NotTaken) => "skip",
                    None => "waits",
                };
                assert_eq!(said, cell, "{rule} over {edges:?}");
            }
        }
    }

    #[test]
    fn who_answers_before_the_last_parent() {
        let early = |rule: TriggerRule, edge: Edge| {
            let mut tally = EdgeTally { open: 2, ..EdgeTally::default() };
            tally.count_edge(edge);
            tally.decide(rule)
        };
        for rule in TriggerRule::ALL {
            let on_met = (rule == TriggerRule::OneSuccess).then_some(TriggerDecision::Run);
            let on_failed = match rule {
                TriggerRule::AllSuccess | TriggerRule::NoneFailed => Some(TriggerDecision::Fail),
                TriggerRule::OneFailed => Some(TriggerDecision::Run),
                TriggerRule::AllDone | TriggerRule::OneSuccess | TriggerRule::AllFailed => None,
            };
            assert_eq!(early(rule, Edge::Met), on_met, "{rule}");
            assert_eq!(early(rule, Edge::Failed), on_failed, "{rule}");
            assert_eq!(early(rule, Edge::Neutral), None, "{rule}");
        }
    }

    #[test]
    fn words_round_trip() {
        for rule in TriggerRule::ALL {
            assert_eq!(TriggerRule::parse(rule.as_str()), Some(rule));
        }
        for text in ["success", "failure", "done", "skipped", "rows_affected >= 1"] {
            assert_eq!(EdgeCondition::parse(text).expect(text).to_string(), text);
        }
    }
}
