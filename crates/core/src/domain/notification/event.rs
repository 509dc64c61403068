//! The events that are notified, and when each is sent: at once, in a digest, or not at all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An event that may be notified; stored in `email_notifications.type`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "NotificationEvent")]
pub enum NotificationEvent {
    /// A job failed and is not retried.
    Failed,
    /// A job timed out and is not retried.
    Timeout,
    /// The outcome of a job cannot be determined.
    Unknown,
    /// A job is parked because its workers died.
    Parked,
    /// An attempt failed or timed out, and the job is retried.
    Retried,
    /// A job was stopped, and the end of its body could not be confirmed.
    KillUnconfirmed,
    /// A job ended its transaction by itself although its class forbids it.
    TxBreach,
    /// A job succeeded, and some of its checks warn.
    ChecksWarned,
    /// A job succeeded after its failure was notified.
    Recovered,
    /// A job is held for longer than its limit.
    HeldLong,
    /// A job has not started by its latest start.
    LateStart,
    /// An attempt runs longer than usual.
    RunningLong,
    /// A job or a batch has not ended by its due time.
    LateFinish,
    /// The forecast of a batch is later than its due time.
    WillBeLate,
    /// A job waits for the approval of a person.
    ApprovalWanted,
    /// A batch runs longer than its limit.
    BatchLong,
    /// A batch is stopped at its deadline.
    BatchTimeout,
    /// A batch ended well.
    BatchDone,
    /// A batch ended well, with warnings.
    BatchWarned,
    /// A batch failed.
    BatchFailed,
    /// A batch that had failed ended well.
    BatchRecovered,
    /// Planned times of a schedule were missed.
    Misfire,
    /// A schedule will not fire again.
    ScheduleEnded,
    /// A firing was skipped.
    FiringSkipped,
    /// A firing failed.
    FiringFailed,
    /// A calendar lacks days that schedules will need.
    CalendarEnds,
    /// A node that dispatched batches has died.
    NodeLost,
    /// Several notifications in one.
    Digest,
    /// A test of whether notifications arrive.
    Test,
}

/// Severity of an event, for filters and for display.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// No action is needed.
    Good,
    /// Someone should check.
    Warning,
    /// Someone must act.
    Bad,
}

/// When a notification is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotifyWhen {
    /// At once.
    Now,
    /// In one digest when the batch has ended.
    Batch,
    /// In one digest per day.
    Day,
    /// Never.
    Off,
}

/// Rules of a job or group for single events; all other events keep their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NotifyRules(pub BTreeMap<NotificationEvent, NotifyWhen>);

impl NotificationEvent {
    /// Every event, in display order.
    pub const ALL: [Self; 29] = [
        Self::Failed,
        Self::Timeout,
        Self::Unknown,
        Self::Parked,
        Self::Retried,
        Self::KillUnconfirmed,
        Self::TxBreach,
        Self::ChecksWarned,
        Self::Recovered,
        Self::HeldLong,
        Self::LateStart,
        Self::RunningLong,
        Self::LateFinish,
        Self::WillBeLate,
        Self::ApprovalWanted,
        Self::BatchLong,
        Self::BatchTimeout,
        Self::BatchDone,
        Self::BatchWarned,
        Self::BatchFailed,
        Self::BatchRecovered,
        Self::Misfire,
        Self::ScheduleEnded,
        Self::FiringSkipped,
        Self::FiringFailed,
        Self::CalendarEnds,
        Self::NodeLost,
        Self::Digest,
        Self::Test,
    ];

    /// The name in tables, definitions and the API; at most 20 characters.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Unknown => "unknown",
            Self::Parked => "parked",
            Self::Retried => "retried",
            Self::KillUnconfirmed => "kill_unconfirmed",
            Self::TxBreach => "tx_breach",
            Self::ChecksWarned => "checks_warned",
            Self::Recovered => "recovered",
            Self::HeldLong => "held_long",
            Self::LateStart => "late_start",
            Self::RunningLong => "running_long",
            Self::LateFinish => "late_finish",
            Self::WillBeLate => "will_be_late",
            Self::ApprovalWanted => "approval_wanted",
            Self::BatchLong => "batch_long",
            Self::BatchTimeout => "batch_timeout",
            Self::BatchDone => "batch_done",
            Self::BatchWarned => "batch_warned",
            Self::BatchFailed => "batch_failed",
            Self::BatchRecovered => "batch_recovered",
            Self::Misfire => "misfire",
            Self::ScheduleEnded => "schedule_ended",
            Self::FiringSkipped => "firing_skipped",
            Self::FiringFailed => "firing_failed",
            Self::CalendarEnds => "calendar_ends",
            Self::NodeLost => "node_lost",
            Self::Digest => "digest",
            Self::Test => "test",
        }
    }

    /// What happened, as a sentence in English and one in Chinese.
    pub fn sentences(self) -> (&'static str, &'static str) {
        match self {
            Self::Failed => ("a job failed for good", "作业最终失败"),
            Self::Timeout => ("a job ran out of time for good", "作业最终超时"),
            Self::Unknown => ("nobody can know how a job ended", "作业结果无法确认"),
            Self::Parked => {
                ("a job is parked because its workers died", "作业因执行进程失效被停放")
            }
            Self::Retried => {
                ("a try failed, and the job is tried again", "一次执行失败，作业将重试")
            }
            Self::KillUnconfirmed => {
                ("a job could not be seen to have stopped", "未能确认作业已停止")
            }
            Self::TxBreach => ("a job ended its transaction by itself", "作业自行结束了事务"),
            Self::ChecksWarned => ("a job ended well, with warnings", "作业完成，但有警告"),
            Self::Recovered => ("a job succeeded after its failure", "作业失败后已恢复"),
            Self::HeldLong => ("a job is held back for long", "作业被长时间挂起"),
            Self::LateStart => ("a job has not started in time", "作业未按时启动"),
            Self::RunningLong => ("a job runs longer than it should", "作业运行时间过长"),
            Self::LateFinish => {
                ("a job or batch is not done by its due time", "作业或批次逾期未完成")
            }
            Self::WillBeLate => ("a batch will not be done by its due time", "批次预计逾期"),
            Self::ApprovalWanted => ("a job waits for an approval", "作业等待审批"),
            Self::BatchLong => ("a batch runs longer than it should", "批次运行时间过长"),
            Self::BatchTimeout => {
                ("a batch is stopped because its time is up", "批次超时，正在停止")
            }
            Self::BatchDone => ("a batch ended well", "批次成功完成"),
            Self::BatchWarned => ("a batch ended well, with warnings", "批次完成，但有警告"),
            Self::BatchFailed => ("a batch failed", "批次失败"),
            Self::BatchRecovered => ("a batch that had failed ended well", "批次失败后已恢复"),
            Self::Misfire => ("planned times of a schedule were missed", "调度错过计划时间"),
            Self::ScheduleEnded => ("a schedule fires no more", "调度已停止触发"),
            Self::FiringSkipped => ("a firing was left out", "一次触发被跳过"),
            Self::FiringFailed => ("a firing failed", "一次触发失败"),
            Self::CalendarEnds => ("a calendar lacks days", "日历缺少日期"),
            Self::NodeLost => ("a process that served has died", "服务进程失效"),
            Self::Digest => ("several notices in one", "多条通知合并"),
            Self::Test => ("somebody tries whether notices arrive", "通知送达测试"),
        }
    }

    /// Parses the name of an event.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == word)
    }

    /// Severity of the event.
    pub fn severity(self) -> Severity {
        match self {
            Self::Failed | Self::Timeout | Self::Unknown | Self::Parked => Severity::Bad,
            Self::KillUnconfirmed | Self::TxBreach | Self::LateFinish => Severity::Bad,
            Self::BatchTimeout | Self::BatchFailed | Self::FiringFailed => Severity::Bad,
            Self::NodeLost | Self::Misfire => Severity::Bad,
            Self::Retried | Self::ChecksWarned | Self::HeldLong | Self::LateStart => {
                Severity::Warning
            }
            Self::RunningLong | Self::WillBeLate | Self::BatchLong => Severity::Warning,
            Self::ApprovalWanted => Severity::Warning,
            Self::BatchWarned | Self::ScheduleEnded | Self::FiringSkipped => Severity::Warning,
            Self::CalendarEnds => Severity::Warning,
            Self::Recovered | Self::BatchDone | Self::BatchRecovered => Severity::Good,
            Self::Digest | Self::Test => Severity::Good,
        }
    }

    /// When the event is sent unless a rule says otherwise. A failed attempt is reported only once the last attempt has
    /// failed; a batch that ended well is reported only on request.
    pub fn by_default(self) -> NotifyWhen {
        match self {
            Self::Retried | Self::BatchDone | Self::BatchWarned | Self::BatchFailed => {
                NotifyWhen::Off
            }
            Self::Failed | Self::Timeout | Self::Unknown | Self::Parked => NotifyWhen::Now,
            Self::KillUnconfirmed | Self::TxBreach | Self::ChecksWarned => NotifyWhen::Now,
            Self::Recovered | Self::HeldLong | Self::LateStart | Self::RunningLong => {
                NotifyWhen::Now
            }
            Self::LateFinish | Self::WillBeLate | Self::BatchLong => NotifyWhen::Now,
            Self::ApprovalWanted => NotifyWhen::Now,
            Self::BatchTimeout | Self::BatchRecovered | Self::Misfire => NotifyWhen::Now,
            Self::ScheduleEnded | Self::FiringSkipped | Self::FiringFailed => NotifyWhen::Now,
            Self::CalendarEnds | Self::NodeLost | Self::Digest | Self::Test => NotifyWhen::Now,
        }
    }

    /// Whether a job or group may set a rule for the event: the event is about a job or a batch.
    pub fn is_of_batch(self) -> bool {
        match self {
            Self::Failed | Self::Timeout | Self::Unknown | Self::Parked | Self::Retried => true,
            Self::KillUnconfirmed | Self::TxBreach | Self::ChecksWarned | Self::Recovered => true,
            Self::HeldLong | Self::LateStart | Self::RunningLong | Self::LateFinish => true,
            Self::WillBeLate | Self::BatchLong | Self::BatchTimeout | Self::BatchDone => true,
            Self::ApprovalWanted => true,
            Self::BatchWarned | Self::BatchFailed | Self::BatchRecovered => true,
            Self::Misfire | Self::ScheduleEnded | Self::FiringSkipped => false,
            Self::FiringFailed | Self::CalendarEnds | Self::NodeLost => false,
            Self::Digest | Self::Test => false,
        }
    }
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Bad => "bad",
        }
    }
}

impl NotifyWhen {
    pub const ALL: [Self; 4] = [Self::Now, Self::Batch, Self::Day, Self::Off];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Batch => "batch",
            Self::Day => "day",
            Self::Off => "off",
        }
    }

    /// Parses the name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|when| when.as_str() == word)
    }
}

impl NotifyRules {
    /// No rules.
    pub const NONE: &'static Self = &Self(BTreeMap::new());

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When an event is sent: by these rules, else by `wider` (the group's), else by its default.
    pub fn notify_when(&self, event: NotificationEvent, wider: &Self) -> NotifyWhen {
        let said = self.0.get(&event).or_else(|| wider.0.get(&event));
        said.copied().unwrap_or_else(|| event.by_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_event_has_a_word_that_fits_its_column() {
        let words: BTreeSet<&str> =
            NotificationEvent::ALL.iter().map(|event| event.as_str()).collect();
        assert_eq!(words.len(), NotificationEvent::ALL.len());
        for event in NotificationEvent::ALL {
            assert!(event.as_str().len() <= 20, "{event:?}");
            assert_eq!(NotificationEvent::parse(event.as_str()), Some(event));
            let as_json = serde_json::to_value(event).expect("json");
            assert_eq!(as_json, event.as_str(), "one word everywhere");
        }
    }

    #[test]
    fn the_job_says_more_than_the_group_and_that_more_than_the_default() {
        let rules =
            |list: &[(NotificationEvent, NotifyWhen)]| NotifyRules(list.iter().copied().collect());
        let job = rules(&[(NotificationEvent::Failed, NotifyWhen::Batch)]);
        let group = rules(&[
            (NotificationEvent::Failed, NotifyWhen::Off),
            (NotificationEvent::Retried, NotifyWhen::Now),
        ]);
        assert_eq!(job.notify_when(NotificationEvent::Failed, &group), NotifyWhen::Batch);
        assert_eq!(job.notify_when(NotificationEvent::Retried, &group), NotifyWhen::Now);
        assert_eq!(job.notify_when(NotificationEvent::Timeout, &group), NotifyWhen::Now);
        assert_eq!(
            NotifyRules::default().notify_when(NotificationEvent::Retried, &NotifyRules::default()),
            NotifyWhen::Off
        );
    }
}
