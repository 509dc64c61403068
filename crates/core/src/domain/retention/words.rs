//! Why a batch is kept, in words.

use super::{KeepReason, RetentionNeed};
use crate::domain::text::lang::Lang;

impl RetentionNeed {
    /// The word for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::OpenOutcome => "open_outcome",
            Self::UnsentMail => "unsent_mail",
            Self::Backfill => "backfill",
            Self::Parent => "parent",
            Self::Firing => "firing",
            Self::Breach => "breach",
            Self::Named => "named",
            Self::Left => "left_to_partitions",
        }
    }

    fn words(self, lang: Lang) -> &'static str {
        match self {
            Self::Unknown => lang.select(
                "a job ended UNKNOWN: look at its data, then force or rerun it",
                "有作业结果为 UNKNOWN：请先核对数据，再强制或重跑",
            ),
            Self::OpenOutcome => {
                lang.select("what became of a try is open", "有一次执行的结果尚未确定")
            }
            Self::UnsentMail => lang.select("a mail about it was not sent", "有相关邮件未发送"),
            Self::Backfill => {
                lang.select("it belongs to a backfill that is not over", "属于尚未结束的补数")
            }
            Self::Parent => lang.select(
                "it is a sub-batch of one that is open or may run again",
                "是某个未结束或可能重跑的批次的子批次",
            ),
            Self::Firing => {
                lang.select("a firing that follows its end is not over", "跟随其结束的触发尚未完成")
            }
            Self::Breach => lang.select(
                "a job of it is marked: it committed by itself (job trust)",
                "其中有作业被标记为自行提交（job trust）",
            ),
            Self::Named => lang.select(
                "a batch that is kept, or is to come, asks for it by number",
                "被保留的或将来的批次按批次号引用它",
            ),
            Self::Left => lang.select(
                "it has rows in a table that is left to partitions",
                "在交由分区清理的表中仍有行",
            ),
        }
    }
}

impl KeepReason {
    /// The word for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Off => "off",
            Self::Young => "young",
            Self::EndedBadly => "ended_badly",
            Self::Newest => "newest",
            Self::Needed(need) => need.as_str(),
        }
    }

    /// The reason for people.
    pub fn words(self, lang: Lang) -> &'static str {
        match self {
            Self::Open => lang.select("not ended", "未结束"),
            Self::Off => {
                lang.select("nothing is to go (batches_days is 0)", "未启用（batches_days 为 0）")
            }
            Self::Young => lang.select("not old enough (batches_days)", "未到期限（batches_days）"),
            Self::EndedBadly => {
                lang.select("did not end well (keep_failed)", "未成功结束（keep_failed）")
            }
            Self::Newest => lang.select(
                "among the newest that ended well (keep_batches)",
                "属于最近成功的批次（keep_batches）",
            ),
            Self::Needed(need) => need.words(lang),
        }
    }
}
