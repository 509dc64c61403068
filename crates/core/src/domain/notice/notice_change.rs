//! Builds the notifications about change requests that wait for a second person, and about changes that an
//! administrator carried out alone. Input: the change, the affected groups and their owners. Output: notices for the
//! outbox.

use crate::domain::job::Group;
use crate::domain::job::shared_definitions::Owner;
use crate::domain::notice::{Addressee, Notice, addressees, each_once, to_each};
use crate::domain::notification::event::{NotificationEvent, NotifyRules, NotifyWhen, Severity};
use crate::domain::notification::{BilingualText, Notification, NotificationTopic};
use crate::domain::permission::four_eyes::{ChangeRequestId, GuardedAction};
use crate::domain::time::Millis;
use std::collections::BTreeSet;

/// Everyone who may be notified of a change.
#[derive(Clone, Debug)]
pub struct ChangeAudience<'a> {
    /// The groups that the change affects.
    pub groups: Vec<&'a Group>,
    pub owners: &'a [Owner],
    /// Addresses from the settings (`notify` of `[four_eyes]`), added to every recipient list.
    pub notify: &'a BTreeSet<String>,
}

impl ChangeAudience<'_> {
    fn to_all(&self, letter: &Notification, when: impl Fn(&Group) -> NotifyWhen) -> Vec<Notice> {
        let groups: Vec<String> = self.groups.iter().map(|group| group.code.to_string()).collect();
        let topic =
            NotificationTopic { group: groups.first().cloned(), ..NotificationTopic::default() };
        let letter = Notification { topic, ..letter.clone() };
        let letter = match groups.is_empty() {
            true => letter,
            false => letter.with_fact("Groups", "作业组", groups.join(", ")),
        };
        let of_settings = self.notify.iter().map(|address| Addressee::plain(address.clone()));
        let mut all = to_each(each_once(of_settings), NotifyWhen::Now, &letter);
        for group in &self.groups {
            let known: BTreeSet<&str> = all.iter().map(|n| n.to.address.as_str()).collect();
            let new = addressees(group, None, self.owners)
                .into_iter()
                .filter(|to| !known.contains(to.address.as_str()))
                .collect();
            let more = to_each(new, when(group), &letter);
            all.extend(more);
        }
        all
    }

    /// Reports a change made on the command line directly on the database, which skips the approval.
    pub fn bypassed(&self, by: &str, summary: &str, reason: &str) -> Vec<Notice> {
        let subject = BilingualText::new(
            format!("{by} makes a change WITHOUT a second person, on the database itself"),
            format!("{by} 绕过第二人审批，直接在数据库上执行变更"),
        );
        let headline = BilingualText::new(
            format!(
                "{by} uses the command line on the database for what needs a second person: {summary}."
            ),
            format!("{by} 通过命令行直接在数据库上执行了需要第二人审批的变更：{summary}。"),
        );
        let mut letter = Notification::new(NotificationEvent::ApprovalWanted, subject, headline)
            .with_fact("Reason", "原因", reason.to_owned())
            .with_step("Look", "查看", "procession audit --action 'four-eyes bypassed'".to_owned());
        letter.worst = Some(Severity::Bad);
        self.to_all(&letter, |_| NotifyWhen::Now)
    }
}

/// A change request as a notification describes it.
#[derive(Clone, Debug)]
pub struct ChangeNotice<'a> {
    pub id: ChangeRequestId,
    /// The user who requests the change.
    pub author: &'a str,
    /// The kind of change.
    pub action: GuardedAction,
    /// The change in one line.
    pub summary: &'a str,
    pub reason: &'a str,
    /// The moment after which the request can no longer be approved.
    pub expires: Millis,
    /// Recipients of the notification.
    pub audience: ChangeAudience<'a>,
}

impl ChangeNotice<'_> {
    /// Notifies the recipients of the groups, unless a group turns off approval notifications, and the addresses of the
    /// settings.
    pub fn wanted(&self) -> Vec<Notice> {
        let (id, author, summary) = (self.id, self.author, self.summary);
        let subject = BilingualText::new(
            format!("change {id} by {author} waits for an approval"),
            format!("{author} 的变更 {id} 等待审批"),
        );
        let headline = BilingualText::new(
            format!("{author} asks for a change that a second person has to approve: {summary}."),
            format!("{author} 申请了需要第二人审批的变更：{summary}。"),
        );
        let letter =
            self.letter(subject, headline).with_fact("Until", "截止时间", self.expires.to_string());
        let verb = |verb: &str| format!("procession change-request {verb} {id}");
        let letter = letter
            .with_step("Look", "查看", verb("show"))
            .with_step("Approve", "批准", verb("approve"))
            .with_step("Reject", "拒绝", format!("{} --comment WHY", verb("reject")));
        self.audience.to_all(&letter, |group| {
            group.notify.notify_when(NotificationEvent::ApprovalWanted, NotifyRules::NONE)
        })
    }

    /// Notifies the same recipients, whatever the groups say about notifications: no second person has reviewed this
    /// change.
    pub fn carried_out_alone(&self, by: &str, comment: &str) -> Vec<Notice> {
        let (id, summary) = (self.id, self.summary);
        let subject = BilingualText::new(
            format!("{by} carried out change {id} WITHOUT a second person"),
            format!("{by} 未经第二人审批执行了变更 {id}"),
        );
        let headline = BilingualText::new(
            format!(
                "{by} has carried out a change without the approval of a second person: {summary}."
            ),
            format!("{by} 未经第二人审批执行了变更：{summary}。"),
        );
        let mut letter = self
            .letter(subject, headline)
            .with_fact("Without a second person because", "未经审批的原因", comment.to_owned())
            .with_step("Look", "查看", format!("procession change-request show {id}"));
        letter.worst = Some(Severity::Bad);
        self.audience.to_all(&letter, |_| NotifyWhen::Now)
    }

    fn letter(&self, subject: BilingualText, headline: BilingualText) -> Notification {
        Notification::new(NotificationEvent::ApprovalWanted, subject, headline)
            .with_fact("Author", "申请人", self.author.to_owned())
            .with_fact("Kind", "类型", self.action.as_str().to_owned())
            .with_fact("Reason", "原因", self.reason.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::GroupCode;
    use crate::domain::text::lang::Lang;

    fn group(code: &str, address: &str) -> Group {
        let code = GroupCode::parse(code).expect("a code");
        Group { notify_email: vec![address.to_owned()], ..Group::with_defaults(code) }
    }

    #[test]
    fn each_recipient_hears_once_and_of_acting_alone_in_any_case() {
        let (gl, mut ar) = (group("gl", "gl@bank.example"), group("ar", "gl@bank.example"));
        ar.notify_email.push("ar@bank.example".to_owned());
        ar.notify.0.insert(NotificationEvent::ApprovalWanted, NotifyWhen::Off);
        let notify = ["risk@bank.example".to_owned()].into();
        let notice = ChangeNotice {
            id: ChangeRequestId(7),
            author: "ann",
            action: GuardedAction::Force,
            summary: "skip LOAD of batch 202407 (gl)",
            reason: "late file",
            expires: Millis(0),
            audience: ChangeAudience { groups: vec![&gl, &ar], owners: &[], notify: &notify },
        };
        let to =
            |all: &[Notice]| -> Vec<String> { all.iter().map(|n| n.to.address.clone()).collect() };
        let wanted = notice.wanted();
        assert_eq!(to(&wanted), ["risk@bank.example", "gl@bank.example"]);
        assert!(wanted[0].letter.plain(Lang::En).contains("procession change-request approve 7"));
        assert!(wanted[0].letter.plain(Lang::Zh).contains("late file"));
        let alone = notice.carried_out_alone("root", "month end");
        assert_eq!(to(&alone), ["risk@bank.example", "gl@bank.example", "ar@bank.example"]);
        assert_eq!(alone[0].letter.worst, Some(Severity::Bad));
        assert!(alone[2].letter.plain(Lang::En).contains("month end"));
        let bypassed = notice.audience.bypassed("oracle", "store a definition of gl", "none");
        assert_eq!(to(&bypassed), to(&alone));
        assert_eq!(bypassed[0].letter.topic.group.as_deref(), Some("gl"));
    }
}
