//! Decides who is notified of which events of jobs and batches, and with what content: the rows of
//! `email_notifications`.

pub mod notice_batch;
pub mod notice_change;
pub mod notice_late;
pub mod notice_trigger;

use crate::domain::access::approval::ApprovalRule;
use crate::domain::batch::Batch;
use crate::domain::job::job_key::JobKey;
use crate::domain::job::queue::{KILL_UNCONFIRMED, QueueStatus};
use crate::domain::job::shared_definitions::Owner;
use crate::domain::job::{Group, JobDef};
use crate::domain::notification::event::{NotificationEvent, NotifyRules, NotifyWhen};
use crate::domain::notification::{BilingualText, Notification, NotificationTopic};
use crate::domain::text::lang::Lang;
use crate::domain::time::{Millis, span_words};

/// One notification to one recipient, as stored in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Recipient.
    pub to: Addressee,
    /// When it is sent.
    pub when: NotifyWhen,
    /// Content.
    pub letter: Notification,
    /// Key of the event, if it must be reported only once however often it is detected: no
    /// recipient gets two notifications with the same key.
    pub event_key: Option<String>,
}

/// A mail address, or `channel:NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressee {
    /// Mail address, or `channel:` and the name of a channel.
    pub address: String,
    /// Language; none: the installation's.
    pub lang: Option<Lang>,
}

/// The end of a job, as input of a notification.
#[derive(Clone, Debug)]
pub struct JobEnd<'a> {
    /// The new state: final, or waiting for a retry.
    pub status: QueueStatus,
    /// Attempt number, counted from 1 over all runs.
    pub attempt: u32,
    /// Start of the last attempt.
    pub started: Option<Millis>,
    /// End of the last attempt.
    pub ended: Millis,
    /// Message of the attempt.
    pub message: Option<&'a str>,
    /// Descendants that can no longer run.
    pub blocked: &'a [String],
}

impl Addressee {
    /// A recipient with the installation's language.
    pub fn plain(address: impl Into<String>) -> Self {
        Self { address: address.into(), lang: None }
    }
}

/// Recipients for a job, or for the batch as a whole: the job's and the group's, each once. For a
/// job or group without addresses, its owner.
pub(in crate::domain) fn addressees(
    group: &Group,
    job: Option<&JobDef>,
    owners: &[Owner],
) -> Vec<Addressee> {
    let jobs = job.map_or_else(Vec::new, |job| or_owner(&job.notify_email, &job.owner, owners));
    let groups = or_owner(&group.notify_email, &group.owner, owners);
    each_once(jobs.into_iter().chain(groups))
}

/// The named addresses, each in the language of the owner with the same address; without any, the
/// owner.
pub(in crate::domain) fn or_owner(
    named: &[String],
    owner: &Option<String>,
    owners: &[Owner],
) -> Vec<Addressee> {
    let of_owner = |o: &Owner| -> Vec<Addressee> {
        let to = |address: &String| Addressee { address: address.clone(), lang: o.lang };
        o.email.iter().map(to).collect()
    };
    if named.is_empty() {
        let found = owners.iter().find(|o| Some(&o.code) == owner.as_ref());
        return found.map_or_else(Vec::new, of_owner);
    }
    let lang_of = |address: &String| owners.iter().find(|o| o.email.contains(address))?.lang;
    named.iter().map(|a| Addressee { address: a.clone(), lang: lang_of(a) }).collect()
}

pub(in crate::domain) fn each_once(all: impl Iterator<Item = Addressee>) -> Vec<Addressee> {
    let mut once: Vec<Addressee> = Vec::new();
    for to in all {
        if once.iter().all(|known| known.address != to.address) {
            once.push(to);
        }
    }
    once
}

/// The same notification to each recipient.
pub(in crate::domain) fn to_each(
    all: Vec<Addressee>,
    when: NotifyWhen,
    letter: &Notification,
) -> Vec<Notice> {
    if when == NotifyWhen::Off {
        return Vec::new();
    }
    let notice = |to| Notice { to, when, letter: letter.clone(), event_key: None };
    all.into_iter().map(notice).collect()
}

/// The batch that notifications are about.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    pub batch: &'a Batch,
    pub group: &'a Group,
    pub owners: &'a [Owner],
}

impl About<'_> {
    pub(in crate::domain) fn topic(&self, job: Option<(&JobDef, u32)>) -> NotificationTopic {
        NotificationTopic {
            group: Some(self.group.code.to_string()),
            batch_no: Some(self.batch.values.batch_no.to_string()),
            job: job.map(|(job, _)| job.code.to_string()),
            attempt: job.map(|(_, attempt)| attempt).filter(|attempt| *attempt > 0),
            ..NotificationTopic::default()
        }
    }

    pub(in crate::domain) fn where_to_look(
        &self,
        letter: Notification,
        job: Option<&JobDef>,
    ) -> Notification {
        let (no, group) = (&self.batch.values.batch_no, &self.group.code);
        let look = format!("procession batch show {no} --group {group}");
        let letter = letter.with_step("Look", "查看", look);
        match job {
            Some(job) => letter.with_step(
                "Log",
                "日志",
                format!("procession logs {no} {} --group {group}", job.code),
            ),
            None => letter,
        }
    }

    /// When an event of a job, or of the batch, is notified.
    pub fn notify_when(&self, event: NotificationEvent, job: Option<&JobDef>) -> NotifyWhen {
        match job {
            Some(job) => job.told_when(event, self.group),
            None => self.group.notify.notify_when(event, NotifyRules::NONE),
        }
    }

    /// A notification about a job to all its recipients.
    pub(in crate::domain) fn of_job(
        &self,
        job: &JobDef,
        attempt: u32,
        letter: Notification,
    ) -> Vec<Notice> {
        let when = self.notify_when(letter.event, Some(job));
        let letter = Notification { topic: self.topic(Some((job, attempt))), ..letter };
        let letter = self.where_to_look(letter, Some(job));
        to_each(addressees(self.group, Some(job), self.owners), when, &letter)
    }

    /// A notification about the batch to all its recipients.
    pub(in crate::domain) fn of_batch(&self, letter: Notification) -> Vec<Notice> {
        let when = self.notify_when(letter.event, None);
        let letter = self.where_to_look(Notification { topic: self.topic(None), ..letter }, None);
        to_each(addressees(self.group, None, self.owners), when, &letter)
    }

    /// `202407 (month_end)`
    pub(in crate::domain) fn batch_label(&self) -> String {
        format!("{} ({})", self.batch.values.batch_no, self.group.code)
    }

    /// About a job that ended in a way its owners must know, or that is retried.
    pub fn ended(&self, job: &JobDef, end: &JobEnd<'_>) -> Vec<Notice> {
        let is_unconfirmed = end.message.is_some_and(|said| said.contains(KILL_UNCONFIRMED));
        let Some((event, en, zh)) = words(end.status, is_unconfirmed) else { return Vec::new() };
        let (code, no) = (&job.code, &self.batch.values.batch_no);
        let group = &self.group.code;
        let subject = BilingualText::new(
            format!("{code} {en} in batch {no} ({group})"),
            format!("{code} {zh}，批次 {no}（{group}）"),
        );
        let headline = BilingualText::new(
            format!("Job {code} ({}) {en}.", job.name),
            format!("作业 {code}（{}）{zh}。", job.name),
        );
        let took = end.started.map_or_else(|| "-".to_owned(), |s| span_words(end.ended.since(s)));
        let mut letter = Notification::new(event, subject, headline)
            .with_fact("Batch", "批次", self.batch_label())
            .with_fact("Attempt", "次数", end.attempt.to_string())
            .with_fact("Ended", "结束时间", end.ended.to_string())
            .with_fact("Duration", "耗时", took);
        letter.error = end.message.map(str::to_owned);
        letter.blocked = end.blocked.to_vec();
        self.of_job(job, end.attempt, letter)
    }

    /// About an attempt that runs longer than its job's `warn_after_sec`.
    pub fn running_long(&self, job: &JobDef, attempt: u32, took_ms: i64) -> Vec<Notice> {
        let (code, no, took) = (&job.code, &self.batch.values.batch_no, span_words(took_ms));
        let (group, limit) = (&self.group.code, job.timeout_sec);
        let warn_after = job.warn_after_sec.unwrap_or_default();
        let subject = BilingualText::new(
            format!("{code} still runs after {took} in batch {no} ({group})"),
            format!("{code} 已运行 {took} 仍未结束，批次 {no}（{group}）"),
        );
        let name = &job.name;
        let headline = BilingualText::new(
            format!(
                "Job {code} ({name}) has run for {took}; its owners are told after {warn_after} s."
            ),
            format!("作业 {code}（{name}）已运行 {took}，超过提醒时限 {warn_after} 秒。"),
        );
        let letter = Notification::new(NotificationEvent::RunningLong, subject, headline)
            .with_note(BilingualText::new(
                format!("It is not stopped before its time limit of {limit} s."),
                format!("超时时限为 {limit} 秒，此前不会停止。"),
            ))
            .with_fact("Batch", "批次", self.batch_label())
            .with_fact("Attempt", "次数", attempt.to_string());
        self.of_job(job, attempt, letter)
    }

    /// About a job that waits for an approval, to those who may give it.
    pub fn approval_wanted(
        &self,
        job: &JobDef,
        attempt: u32,
        rule: &ApprovalRule,
        deadline: Millis,
    ) -> Vec<Notice> {
        let (code, no, group) = (&job.code, &self.batch.values.batch_no, &self.group.code);
        let subject = BilingualText::new(
            format!("{code} waits for an approval in batch {no} ({group})"),
            format!("{code} 等待审批，批次 {no}（{group}）"),
        );
        let question = rule.question.as_deref();
        let headline = BilingualText::new(
            question.map_or_else(|| format!("May job {code} ({}) go on?", job.name), str::to_owned),
            question
                .map_or_else(|| format!("作业 {code}（{}）可以继续吗?", job.name), str::to_owned),
        );
        let approvers = |lang| rule.describe(&job.group, lang);
        let mut letter = Notification::new(NotificationEvent::ApprovalWanted, subject, headline)
            .with_note(BilingualText::new(
                format!("Who may decide: {}.", approvers(Lang::En)),
                format!("审批人：{}。", approvers(Lang::Zh)),
            ))
            .with_fact("Batch", "批次", self.batch_label())
            .with_fact("Job", "作业", format!("{code} ({})", job.name))
            .with_fact("Started by", "发起人", self.batch.started_by.clone())
            .with_fact("Until", "截止时间", deadline.to_string());
        if rule.four_eyes {
            letter = letter.with_note(BilingualText::new(
                "Whoever started the batch cannot decide.",
                "发起该批次的人不能审批。",
            ));
        }
        let verb = |verb: &str| format!("procession {verb} {no} {code} --group {group}");
        let letter = letter.with_step("Approve", "批准", verb("approve")).with_step(
            "Reject",
            "拒绝",
            format!("{} --comment WHY", verb("reject")),
        );
        self.of_job(job, attempt, letter)
    }

    /// About a job that ended its transaction itself although its class forbids it. Sent in addition to the
    /// notifications about its end: the job must be fixed however it ended.
    pub fn caught(&self, job: &JobDef, attempt: u32, said: &str) -> Vec<Notice> {
        let (code, name, tx) = (&job.code, &job.name, job.tx.as_str());
        let subject = BilingualText::new(
            format!("{code} is not started again: it commits by itself (tx: {tx})"),
            format!("{code} 不再启动：自行结束了事务(tx: {tx})"),
        );
        let headline = BilingualText::new(
            format!(
                "Job {code} ({name}) is declared tx: {tx} and ended its transaction by itself."
            ),
            format!("作业 {code}（{name}）声明为 tx: {tx}，却自行结束了事务。"),
        );
        let key = JobKey::of_definition(job);
        let mut letter = Notification::new(NotificationEvent::TxBreach, subject, headline)
            .with_note(BilingualText::new(
                "It is refused until it is mended or declared tx: none.",
                "修复该作业或改为 tx: none 之前，不会再次启动。",
            ))
            .with_fact("Batch", "批次", self.batch_label())
            .with_step("Then", "处理后", format!("procession job trust {key} --reason WHY"));
        letter.error = Some(said.to_owned());
        self.of_job(job, attempt, letter)
    }

    /// About a batch that runs longer than its group's `warn_after_sec`.
    pub fn batch_long(&self) -> Vec<Notice> {
        let (no, group, name) = (&self.batch.values.batch_no, &self.group.code, &self.group.name);
        let took = span_words(i64::from(self.group.warn_after_sec.unwrap_or_default()) * 1_000);
        let subject = BilingualText::new(
            format!("batch {no} ({group}) still runs after {took}"),
            format!("批次 {no}（{group}）运行 {took} 后仍未结束"),
        );
        let headline = BilingualText::new(
            format!(
                "Batch {no} of group {group} ({name}) still runs, {took} after it was opened or \
                 resumed."
            ),
            format!("批次 {no}（作业组 {group}，{name}）启动或恢复 {took} 后仍未结束。"),
        );
        let why = format!("procession batch why {no} --group {group}");
        self.of_batch(
            Notification::new(NotificationEvent::BatchLong, subject, headline)
                .with_step("Why", "原因", why),
        )
    }

    /// About a batch that is stopped at its deadline; `reason` says so.
    pub fn batch_timeout(&self, reason: &str) -> Vec<Notice> {
        let (no, group, name) = (&self.batch.values.batch_no, &self.group.code, &self.group.name);
        let limit = self.group.batch_timeout_sec.unwrap_or_default();
        let subject = BilingualText::new(
            format!("batch {no} ({group}) is stopped: {reason}"),
            format!("批次 {no}（{group}）超过 {limit} 秒时限，正在停止"),
        );
        let headline = BilingualText::new(
            format!("Batch {no} of group {group} ({name}) {reason} and is being stopped."),
            format!("批次 {no}（作业组 {group}，{name}）超过 {limit} 秒时限，正在停止。"),
        );
        let go_on = format!("procession run DEFINITION --batch-no {no} --resume");
        let letter = Notification::new(NotificationEvent::BatchTimeout, subject, headline);
        self.of_batch(letter.with_step("Go on", "继续", go_on))
    }
}

fn words(
    status: QueueStatus,
    is_unconfirmed: bool,
) -> Option<(NotificationEvent, &'static str, &'static str)> {
    match status {
        QueueStatus::Failed => Some((NotificationEvent::Failed, "failed", "执行失败")),
        QueueStatus::Timeout => Some((NotificationEvent::Timeout, "timed out", "执行超时")),
        QueueStatus::Unknown if is_unconfirmed => Some((
            NotificationEvent::KillUnconfirmed,
            "could not be seen to have stopped and has an unknown outcome",
            "未能确认已停止，结果未知",
        )),
        QueueStatus::Unknown => {
            Some((NotificationEvent::Unknown, "has an unknown outcome", "结果未知"))
        }
        // Only a parked job is reported; an operator knows about a hold of their own.
        QueueStatus::Held => Some((NotificationEvent::Parked, "is parked", "已停放，等待人工处理")),
        QueueStatus::RetryWait => {
            Some((NotificationEvent::Retried, "failed and is tried again", "执行失败，将重试"))
        }
        QueueStatus::Warning => {
            Some((NotificationEvent::ChecksWarned, "ended with warnings", "已完成，但有警告"))
        }
        QueueStatus::Pending | QueueStatus::Queued | QueueStatus::Running => None,
        QueueStatus::Killing | QueueStatus::Killed | QueueStatus::Success => None,
        QueueStatus::Forced | QueueStatus::Skipped | QueueStatus::NotTaken => None,
        QueueStatus::UpstreamFailed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{GroupCode, JobCode, JobType};

    fn setting() -> (Batch, Group, JobDef) {
        let code = GroupCode::parse("month_end").expect("group");
        let group = Group {
            name: "Month end".into(),
            notify_email: vec!["ops@bank.example".into(), "gl@bank.example".into()],
            ..Group::with_defaults(code.clone())
        };
        let mut job = JobDef::with_defaults(
            JobCode::parse("GL_POST").expect("code"),
            code.clone(),
            JobType::parse("PROC").expect("type"),
        );
        job.name = "Post\r\nBcc: x".into();
        job.notify_email = vec!["gl@bank.example".into()];
        let batch = Batch::sample("202407", &code);
        (batch, group, job)
    }

    fn notices(status: QueueStatus) -> Vec<Notice> {
        let (batch, group, job) = setting();
        let end = JobEnd {
            status,
            attempt: 3,
            started: Some(Millis(0)),
            ended: Millis(12_300),
            message: Some("ORA-00060"),
            blocked: &["TB".to_owned(), "PNL".to_owned()],
        };
        About { batch: &batch, group: &group, owners: &[] }.ended(&job, &end)
    }

    fn subjects(sent: &[Notice]) -> Vec<String> {
        sent.iter().map(|n| n.letter.subject_line(Lang::En)).collect()
    }

    #[test]
    fn each_address_hears_once_and_can_filter_by_subject() {
        let sent = notices(QueueStatus::Timeout);
        let to: Vec<&str> = sent.iter().map(|n| n.to.address.as_str()).collect();
        assert_eq!(to, ["gl@bank.example", "ops@bank.example"]);
        let letter = &sent[0].letter;
        assert_eq!(
            subjects(&sent)[0],
            "[Procession] GL_POST timed out in batch 202407 (month_end)"
        );
        assert_eq!(letter.event, NotificationEvent::Timeout);
        let en = letter.plain(Lang::En);
        for part in ["12.3 s", "ORA-00060", "TB, PNL", "logs 202407 GL_POST"] {
            assert!(en.contains(part), "{part} in {en}");
        }
        let zh = letter.plain(Lang::Zh);
        assert!(zh.contains("执行超时") && !zh.contains("timed out"), "{zh}");
        assert_eq!(letter.topic.job.as_deref(), Some("GL_POST"));
        assert_eq!(letter.topic.attempt, Some(3));
    }

    #[test]
    fn who_gives_no_address_is_heard_for_by_the_owner_in_its_language() {
        let owner = |code: &str, email: &[&str], lang| Owner {
            code: code.to_owned(),
            name: code.to_owned(),
            email: email.iter().map(|&e| e.to_owned()).collect(),
            lang,
        };
        let owners = [
            owner("gl", &["gl@b", "ops@b"], Some(Lang::Zh)),
            owner("fx", &["fx@b"], None),
            owner("mute", &[], None),
        ];
        let code = GroupCode::parse("g").expect("group");
        let said = |list: &[&str]| list.iter().map(|&e| e.to_owned()).collect::<Vec<_>>();
        for (job_owner, job_email, group_owner, group_email, wanted) in [
            (None, &[][..], None, &[][..], &[][..]),
            (Some("fx"), &[], Some("gl"), &[], &["fx@b", "gl@b zh", "ops@b zh"]),
            (Some("fx"), &["me@b"], Some("gl"), &[], &["me@b", "gl@b zh", "ops@b zh"]),
            (Some("gl"), &[], Some("gl"), &["ops@b"], &["gl@b zh", "ops@b zh"]),
            (Some("free text"), &[], Some("mute"), &[], &[]),
        ] {
            let mut group = Group::with_defaults(code.clone());
            group.owner = group_owner.map(str::to_owned);
            group.notify_email = said(group_email);
            let job_code = JobCode::parse("A").expect("code");
            let mut job = JobDef::with_defaults(
                job_code,
                code.clone(),
                JobType::parse("NOOP").expect("type"),
            );
            job.owner = job_owner.map(str::to_owned);
            job.notify_email = said(job_email);
            let words = |to: &Addressee| match to.lang {
                Some(Lang::Zh) => format!("{} zh", to.address),
                Some(Lang::En) | None => to.address.clone(),
            };
            let of_job: Vec<String> =
                addressees(&group, Some(&job), &owners).iter().map(words).collect();
            let of_group: Vec<String> =
                addressees(&group, None, &owners).iter().map(words).collect();
            assert_eq!(of_job, wanted, "{job_owner:?} {group_owner:?}");
            assert!(of_job.ends_with(&of_group));
        }
    }

    #[test]
    fn what_runs_long_is_told_with_where_to_look() {
        let (batch, mut group, mut job) = setting();
        (group.warn_after_sec, group.batch_timeout_sec) = (Some(7_200), Some(9_000));
        job.warn_after_sec = Some(600);
        let about = About { batch: &batch, group: &group, owners: &[] };
        let sent = about.running_long(&job, 3, 601_000);
        assert_eq!(sent.len(), 2);
        let subject =
            "[Procession] GL_POST still runs after 10 min 01 s in batch 202407 (month_end)";
        assert_eq!(
            (subjects(&sent)[0].as_str(), sent[0].letter.event),
            (subject, NotificationEvent::RunningLong)
        );
        assert!(sent[0].letter.plain(Lang::En).contains("logs 202407 GL_POST"));
        let sent = about.batch_long();
        let subject = "[Procession] batch 202407 (month_end) still runs after 2 h 00 min";
        assert_eq!((subjects(&sent)[0].as_str(), sent.len()), (subject, 2));
        let sent = about.batch_timeout("ran past its 9000 s");
        let subject = "[Procession] batch 202407 (month_end) is stopped: ran past its 9000 s";
        assert_eq!(
            (subjects(&sent)[0].as_str(), sent[0].letter.event),
            (subject, NotificationEvent::BatchTimeout)
        );
        assert!(sent[0].letter.plain(Lang::Zh).contains("超过 9000 秒时限"));
    }

    #[test]
    fn rules_say_what_is_told_and_when() {
        assert!(notices(QueueStatus::Success).is_empty());
        assert!(notices(QueueStatus::Killed).is_empty());
        assert!(notices(QueueStatus::RetryWait).is_empty(), "only who asks for it");
        assert_eq!(notices(QueueStatus::Warning)[0].letter.event, NotificationEvent::ChecksWarned);
        let (batch, mut group, mut job) = setting();
        group.notify.0 = [
            (NotificationEvent::Retried, NotifyWhen::Day),
            (NotificationEvent::Failed, NotifyWhen::Off),
        ]
        .into();
        job.notify =
            Some(Box::new(NotifyRules([(NotificationEvent::Retried, NotifyWhen::Batch)].into())));
        let about = About { batch: &batch, group: &group, owners: &[] };
        let end = |status| JobEnd {
            status,
            attempt: 1,
            started: None,
            ended: Millis(0),
            message: Some("kill unconfirmed: away"),
            blocked: &[],
        };
        assert_eq!(about.ended(&job, &end(QueueStatus::RetryWait))[0].when, NotifyWhen::Batch);
        assert!(about.ended(&job, &end(QueueStatus::Failed)).is_empty());
        let unconfirmed = about.ended(&job, &end(QueueStatus::Unknown));
        assert_eq!(unconfirmed[0].letter.event, NotificationEvent::KillUnconfirmed);
    }
}
