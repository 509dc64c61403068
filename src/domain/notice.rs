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
    /// What happened: the job's final state in lower case.
    pub kind: &'static str,
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

/// The addresses that hear of a job: its own and its group's, each once. Who gives none is heard for
/// by the owner.
fn told(group: &Group, job: &JobDef, owners: &[Owner]) -> Vec<String> {
    let of_owner = |code: &Option<String>| -> Vec<String> {
        let found = owners.iter().find(|o| Some(&o.code) == code.as_ref());
        found.map_or_else(Vec::new, |o| o.email.clone())
    };
    let or_owner = |own: &[String], owner: &Option<String>| {
        if own.is_empty() { of_owner(owner) } else { own.to_vec() }
    };
    let mut told = Vec::new();
    let jobs = or_owner(&job.notify_email, &job.owner);
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
    told(group, job, owners)
        .into_iter()
        .map(|recipient| Notice { recipient, subject: subject.clone(), body: body.clone(), kind })
        .collect()
}

fn words(status: QueueStatus) -> Option<(&'static str, &'static str, &'static str)> {
    match status {
        QueueStatus::Failed => Some(("failed", "failed", "执行失败")),
        QueueStatus::Timeout => Some(("timeout", "timed out", "执行超时")),
        QueueStatus::Unknown => Some(("unknown", "has an unknown outcome", "结果未知")),
        _ => None,
    }
}

/// Nothing from a job may begin a second header line.
fn one_line(text: &str) -> String {
    clip(&text.replace(|c: char| c.is_control(), " "), 200)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::batch::BatchStatus;
    use crate::domain::id::{BatchId, BatchNo, GroupCode, JobCode, JobType};
    use crate::domain::params::BatchValues;
    use std::collections::BTreeMap;

    fn notices(status: QueueStatus) -> Vec<Notice> {
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
        };
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
            assert_eq!(told(&group, &job, &owners), wanted, "{job_owner:?} {group_owner:?}");
        }
    }

    #[test]
    fn success_is_not_mailed() {
        assert!(notices(QueueStatus::Success).is_empty());
        assert!(notices(QueueStatus::Killed).is_empty());
    }
}
