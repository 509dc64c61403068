//! Who hears of what, in which words: the rows of `email_notifications`.

use crate::domain::batch::Batch;
use crate::domain::declare::Owner;
use crate::domain::job::{Group, JobDef};
use crate::domain::queue::QueueStatus;
use crate::domain::text::clip;
use crate::domain::time::{Millis, span_words};

/// One mail to one recipient, as it is put in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whom it is for.
    pub recipient: String,
    /// Subject; one line.
    pub subject: String,
    /// Plain text.
    pub body: String,
    /// What happened: the job's final state in lower case, `parked`, `running_long`, `batch_long`,
    /// `batch_timeout` or `tx_breach`; of schedules `misfire`, `schedule_ended`, `firing_skipped`,
    /// `firing_failed` or `calendar_ends`.
    pub kind: &'static str,
    /// What it is told once for; none: each time it is said.
    pub event_key: Option<String>,
}

/// What a notice about a job tells.
#[derive(Clone, Debug)]
pub struct JobEnd<'a> {
    /// Its final state.
    pub status: QueueStatus,
    /// Which start it was, counted from 1 over all runs.
    pub attempt: u32,
    /// Start of the last try.
    pub started: Option<Millis>,
    /// End of the last try.
    pub ended: Millis,
    /// What it said.
    pub message: Option<&'a str>,
    /// Jobs below it that can no longer run.
    pub blocked: &'a [String],
}

/// The addresses that hear of a job, or of the batch as a whole: the job's own and the group's, each
/// once. Who gives none is heard for by the owner.
pub(in crate::domain) fn told(
    group: &Group,
    job: Option<&JobDef>,
    owners: &[Owner],
) -> Vec<String> {
    let of_owner = |code: &Option<String>| -> Vec<String> {
        let found = owners.iter().find(|o| Some(&o.code) == code.as_ref());
        found.map_or_else(Vec::new, |o| o.email.clone())
    };
    let or_owner = |own: &[String], owner: &Option<String>| {
        if own.is_empty() { of_owner(owner) } else { own.to_vec() }
    };
    let mut told = Vec::new();
    let jobs = job.map_or_else(Vec::new, |job| or_owner(&job.notify_email, &job.owner));
    for address in jobs.into_iter().chain(or_owner(&group.notify_email, &group.owner)) {
        if !told.contains(&address) {
            told.push(address);
        }
    }
    told
}

/// The mails about a job that ended for good in a way its owners must know. Both languages in one
/// mail, English first, so that the subject stays usable as a filter.
pub fn about(
    batch: &Batch,
    group: &Group,
    job: &JobDef,
    owners: &[Owner],
    end: &JobEnd<'_>,
) -> Vec<Notice> {
    let Some((kind, verb, verb_zh)) = words(end.status) else { return Vec::new() };
    let no = &batch.values.batch_no;
    let subject =
        one_line(&format!("[Procession] {} {} in batch {no} ({})", job.code, verb, group.code));
    let took = end.started.map_or_else(|| "-".to_owned(), |s| span_words(end.ended.since(s)));
    let blocked = match end.blocked {
        [] => "-".to_owned(),
        codes => clip(&codes.join(", "), 2_000),
    };
    let message = end.message.unwrap_or("-");
    let body = format!(
        "Job {code} ({name}) {verb}.\n作业 {code} {verb_zh}。\n\n\
         Batch / 批次:        {no} ({group})\n\
         Attempt / 次数:      {attempt}\n\
         Ended / 结束时间:    {ended}\n\
         Duration / 耗时:     {took}\n\
         Error / 错误:        {message}\n\
         Blocked / 受阻作业:  {blocked}\n\n\
         Look / 查看:         procession batch show {no} --group {group}\n\
         Log / 日志:          procession logs {no} {code}\n",
        code = job.code,
        name = job.name,
        group = group.code,
        attempt = end.attempt,
        ended = end.ended,
    );
    to_each(told(group, Some(job), owners), &subject, &body, kind)
}

/// The same mail to each address.
pub(in crate::domain) fn to_each(
    addresses: Vec<String>,
    subject: &str,
    body: &str,
    kind: &'static str,
) -> Vec<Notice> {
    let notice = |recipient| Notice {
        recipient,
        subject: subject.to_owned(),
        body: body.to_owned(),
        kind,
        event_key: None,
    };
    addresses.into_iter().map(notice).collect()
}

/// The mails about a try that runs longer than its job's `warn_after_sec`.
pub fn running_long(
    batch: &Batch,
    group: &Group,
    job: &JobDef,
    owners: &[Owner],
    attempt: u32,
    took_ms: i64,
) -> Vec<Notice> {
    let (no, took) = (&batch.values.batch_no, span_words(took_ms));
    let warn_after = job.warn_after_sec.unwrap_or_default();
    let subject =
        format!("[Procession] {} still runs after {took} in batch {no} ({})", job.code, group.code);
    let body = format!(
        "Job {code} ({name}) has run for {took}; its owners are told after {warn_after} s.\n\
         作业 {code} 已运行 {took},超过提醒时限 {warn_after} 秒。\n\n\
         It is not stopped before its time limit of {limit} s. / 超时时限为 {limit} 秒,此前不会停止。\n\n\
         Batch / 批次:        {no} ({group})\n\
         Attempt / 次数:      {attempt}\n\n\
         Look / 查看:         procession batch show {no} --group {group}\n\
         Log / 日志:          procession logs {no} {code}\n",
        code = job.code,
        name = job.name,
        group = group.code,
        limit = job.timeout_sec,
    );
    to_each(told(group, Some(job), owners), &one_line(&subject), &body, "running_long")
}

/// The mails about a job that was seen to end its transaction by itself although its class forbids it.
/// They come beside those about its end: this must be mended however it ended.
pub fn caught(
    batch: &Batch,
    group: &Group,
    job: &JobDef,
    owners: &[Owner],
    said: &str,
) -> Vec<Notice> {
    let (code, no, tx) = (&job.code, &batch.values.batch_no, job.tx.as_str());
    let subject =
        format!("[Procession] {code} is not started again: it commits by itself (tx: {tx})");
    let body = format!(
        "Job {code} ({name}) is declared tx: {tx} and ended its transaction by itself.\n\
         作业 {code} 声明为 tx: {tx},却自行结束了事务。\n\n\
         It is refused until it is mended or declared tx: none.\n\
         修复该作业或改为 tx: none 之前,不会再次启动。\n\n\
         Batch / 批次:        {no} ({group})\n\
         Seen / 发现:         {said}\n\n\
         Then / 处理后:       procession job trust {mended}\n",
        mended = job.defined_as(),
        name = job.name,
        group = group.code,
    );
    to_each(told(group, Some(job), owners), &one_line(&subject), &body, "tx_breach")
}

/// The mails about a batch that runs longer than its group's `warn_after_sec`.
pub fn batch_long(batch: &Batch, group: &Group, owners: &[Owner]) -> Vec<Notice> {
    let no = &batch.values.batch_no;
    let warn_after = group.warn_after_sec.unwrap_or_default();
    let took = span_words(i64::from(warn_after) * 1_000);
    let subject = format!("[Procession] batch {no} ({}) still runs after {took}", group.code);
    let body = format!(
        "Batch {no} of group {group} ({name}) still runs, {took} after it was opened or resumed.\n\
         批次 {no}(作业组 {group})启动或恢复 {took} 后仍未结束。\n\n\
         Why / 原因:          procession batch why {no} --group {group}\n\
         Look / 查看:         procession batch show {no} --group {group}\n",
        group = group.code,
        name = group.name,
    );
    to_each(told(group, None, owners), &one_line(&subject), &body, "batch_long")
}

/// The mails about a batch that is stopped because its time is up; `reason` says so.
pub fn batch_timeout(batch: &Batch, group: &Group, owners: &[Owner], reason: &str) -> Vec<Notice> {
    let no = &batch.values.batch_no;
    let limit = group.batch_timeout_sec.unwrap_or_default();
    let subject = format!("[Procession] batch {no} ({}) is stopped: {reason}", group.code);
    let body = format!(
        "Batch {no} of group {group} ({name}) {reason} and is being stopped.\n\
         批次 {no}(作业组 {group})超过 {limit} 秒时限,正在停止。\n\n\
         Look / 查看:         procession batch show {no} --group {group}\n\
         Go on / 继续:        procession run DEFINITION --batch-no {no} --resume\n",
        group = group.code,
        name = group.name,
    );
    to_each(told(group, None, owners), &one_line(&subject), &body, "batch_timeout")
}

fn words(status: QueueStatus) -> Option<(&'static str, &'static str, &'static str)> {
    match status {
        QueueStatus::Failed => Some(("failed", "failed", "执行失败")),
        QueueStatus::Timeout => Some(("timeout", "timed out", "执行超时")),
        QueueStatus::Unknown => Some(("unknown", "has an unknown outcome", "结果未知")),
        // Only a job that was parked is told of; what an operator holds back, he knows.
        QueueStatus::Held => Some(("parked", "is parked", "已停放,等待人工处理")),
        _ => None,
    }
}

/// Nothing from a job may begin a second header line.
pub(in crate::domain) fn one_line(text: &str) -> String {
    clip(&text.replace(|c: char| c.is_control(), " "), 200)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::batch::BatchStatus;
    use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode, JobType};
    use crate::domain::params::BatchValues;
    use std::collections::BTreeMap;

    fn setting() -> (Batch, Group, JobDef) {
        let code = GroupCode::parse("month_end").expect("group");
        let group = Group {
            name: "Month end".into(),
            notify_email: vec!["ops@bank.example".into(), "gl@bank.example".into()],
            ..Group::bare(code.clone())
        };
        let mut job = JobDef::bare(
            JobCode::parse("GL_POST").expect("code"),
            code.clone(),
            JobType::parse("PROC").expect("type"),
        );
        job.name = "Post\r\nBcc: x".into();
        job.notify_email = vec!["gl@bank.example".into()];
        let batch = Batch {
            batch_id: BatchId(1),
            values: BatchValues {
                batch_no: BatchNo::parse("202407").expect("no"),
                group: code,
                business_date: None,
                params: BTreeMap::new(),
            },
            batch_type: None,
            status: BatchStatus::Running,
            owner: None,
            started_by: "t".into(),
            create_time: Millis(0),
            end_time: None,
            reason: None,
            deadline: None,
            revision: 0,
            is_paused: false,
            removing: None,
        };
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
        about(&batch, &group, &job, &[], &end)
    }

    #[test]
    fn each_address_hears_once_and_can_filter_by_subject() {
        let sent = notices(QueueStatus::Timeout);
        let to: Vec<&str> = sent.iter().map(|n| n.recipient.as_str()).collect();
        assert_eq!(to, ["gl@bank.example", "ops@bank.example"]);
        assert_eq!(sent[0].subject, "[Procession] GL_POST timed out in batch 202407 (month_end)");
        assert_eq!(sent[0].kind, "timeout");
        for part in ["12.3 s", "ORA-00060", "TB, PNL", "执行超时", "logs 202407 GL_POST"] {
            assert!(sent[0].body.contains(part), "{part} in {}", sent[0].body);
        }
    }

    #[test]
    fn who_gives_no_address_is_heard_for_by_the_owner() {
        let owner = |code: &str, email: &[&str]| Owner {
            code: code.to_owned(),
            name: code.to_owned(),
            email: email.iter().map(|&e| e.to_owned()).collect(),
            lang: None,
        };
        let owners = [owner("gl", &["gl@b", "ops@b"]), owner("fx", &["fx@b"]), owner("mute", &[])];
        let code = GroupCode::parse("g").expect("group");
        let said = |list: &[&str]| list.iter().map(|&e| e.to_owned()).collect::<Vec<_>>();
        for (job_owner, job_email, group_owner, group_email, wanted) in [
            (None, &[][..], None, &[][..], &[][..]),
            (Some("fx"), &[], Some("gl"), &[], &["fx@b", "gl@b", "ops@b"]),
            (Some("fx"), &["me@b"], Some("gl"), &[], &["me@b", "gl@b", "ops@b"]),
            (Some("gl"), &[], Some("gl"), &["ops@b"], &["gl@b", "ops@b"]),
            (Some("free text"), &[], Some("mute"), &[], &[]),
        ] {
            let mut group = Group::bare(code.clone());
            group.owner = group_owner.map(str::to_owned);
            group.notify_email = said(group_email);
            let job_code = JobCode::parse("A").expect("code");
            let mut job =
                JobDef::bare(job_code, code.clone(), JobType::parse("NOOP").expect("type"));
            job.owner = job_owner.map(str::to_owned);
            job.notify_email = said(job_email);
            let of_group = told(&group, None, &owners);
            assert!(wanted.ends_with(&of_group.iter().map(String::as_str).collect::<Vec<_>>()));
            assert_eq!(told(&group, Some(&job), &owners), wanted, "{job_owner:?} {group_owner:?}");
        }
    }

    #[test]
    fn what_runs_long_is_told_with_where_to_look() {
        let (batch, mut group, mut job) = setting();
        (group.warn_after_sec, group.batch_timeout_sec) = (Some(7_200), Some(9_000));
        job.warn_after_sec = Some(600);
        let sent = running_long(&batch, &group, &job, &[], 3, 601_000);
        assert_eq!(sent.len(), 2);
        let subject =
            "[Procession] GL_POST still runs after 10 min 01 s in batch 202407 (month_end)";
        assert_eq!((sent[0].subject.as_str(), sent[0].kind), (subject, "running_long"));
        assert!(sent[0].body.contains("logs 202407 GL_POST"), "{}", sent[0].body);
        let sent = batch_long(&batch, &group, &[]);
        let subject = "[Procession] batch 202407 (month_end) still runs after 2 h 00 min";
        assert_eq!((sent[0].subject.as_str(), sent.len()), (subject, 2));
        let sent = batch_timeout(&batch, &group, &[], "ran past its 9000 s");
        let subject = "[Procession] batch 202407 (month_end) is stopped: ran past its 9000 s";
        assert_eq!((sent[0].subject.as_str(), sent[0].kind), (subject, "batch_timeout"));
        assert!(sent[0].body.contains("超过 9000 秒时限"), "{}", sent[0].body);
    }

    #[test]
    fn success_is_not_mailed() {
        assert!(notices(QueueStatus::Success).is_empty());
        assert!(notices(QueueStatus::Killed).is_empty());
    }
}
