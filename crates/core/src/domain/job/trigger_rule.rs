//! Decides when a job may start from the states of its parents: the condition of each edge, and the
//! rule over all edges.
//!
//! The rules have Airflow's names; the effect of a skip is defined here only. There are two kinds:
//! an operator's skip ("go on without it") counts as success, and a branch not taken is neutral: a
//! child whose parents were all neutral is skipped too.

use crate::domain::job::queue::QueueStatus;
use crate::domain::value::expr::Expr;
use serde::{Deserialize, Serialize};

/// How the edges from a job's parents are combined.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "snake_case")]
pub enum TriggerRule {
    /// Every parent succeeded.
    #[default]
    AllSuccess,
    /// Every parent has ended, successfully or not.
    AllDone,
    /// One parent succeeded; the others are not awaited.
    OneSuccess,
    /// Every parent failed.
    AllFailed,
    /// One parent failed; the others are not awaited.
    OneFailed,
    /// Every parent has ended and none failed.
    NoneFailed,
}

impl TriggerRule {
    /// Every rule, in the order of the documentation.
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

    /// Parses the word in a definition.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == word)
    }

    /// Whether edges of a job with this rule may have conditions. The other rules refer to success
    /// and failure themselves, and a condition would contradict them.
    pub fn takes_conditions(self) -> bool {
        matches!(self, Self::AllSuccess | Self::OneSuccess)
    }
}

impl std::fmt::Display for TriggerRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The condition of one edge on its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(try_from = "String", into = "String")]
pub enum EdgeCondition {
    /// The parent succeeded.
    #[default]
    Success,
    /// The parent failed.
    Failure,
    /// The parent has ended.
    Done,
    /// The parent was skipped, by an operator or as a branch not taken.
    Skipped,
    /// The parent succeeded and the expression on its outputs is true.
    Output(Box<Expr>),
}

impl EdgeCondition {
    /// Parses a condition word or an expression.
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

// Hashes an expression by its text, its form in tables and files.
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

/// Evaluation of an edge whose parent is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edge {
    /// The condition holds.
    Met,
    /// The parent failed where success is required.
    Failed,
    /// The condition does not hold: this branch is not taken.
    Unmet,
    /// The parent was a branch not taken.
    Neutral,
    /// It is unknown whether the parent took effect.
    Lost,
}

/// Evaluates an edge with condition `when` for a parent in state `parent`; `holds` evaluates the
/// expression. `None` while the parent is not final.
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

/// Counts of a job's edges by evaluation.
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
    /// Parents that were branches not taken.
    pub neutral: u32,
    /// Parents of unknown outcome.
    pub lost: u32,
}

/// The decision about a job.
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
    /// Counts one more evaluated edge.
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

    /// The decision of `rule`; `None` while the job waits. It never depends on the order in which
    /// the parents end: it is given early only where no later edge could change it.
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

    /// The first table of docs/dependencies.md, cell by cell: the evaluation of an edge by its
    /// parent's state.
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
        // In the last column the expression is true, then false.
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

    /// The second table: the decision of each rule once all edges are evaluated. Each letter is an
    /// edge: m met, f failed, u unmet, n neutral, l lost.
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
