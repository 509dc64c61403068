//! `store::outbox`.

use super::{Place, T0, later, me, other, running};
use procession::domain::batch::BatchStatus;
use procession::domain::id::{BatchId, NodeId};
use procession::domain::notice::{Addressee, Notice};
use procession::domain::notification::event::{NotificationEvent, NotifyWhen};
use procession::domain::notification::outbox_schedule::{MailStatus, Snooze, digest};
use procession::domain::notification::{BilingualText, Notification};
use procession::domain::text::lang::Lang;
use procession::domain::time::Millis;
use procession::store::batch;
use procession::store::outbox::{
    self, ClaimedNotification, DeliveryMark, NotificationRow, OutboxFilter,
};

fn notice(to: &str, when: NotifyWhen) -> Notice {
    let subject = BilingualText::new("总账 failed in batch 202407", "总账 执行失败,批次 202407");
    let headline = BilingualText::new("Job 总账 failed. 🧾", "作业执行失败 🧾\n".repeat(30));
    let mut letter = Notification::new(NotificationEvent::Failed, subject, headline);
    (letter.topic.group, letter.topic.job) = (Some("g".to_owned()), Some("总账".to_owned()));
    Notice { to: Addressee::plain(to), when, letter, event_key: None }
}

async fn put(place: &Place, batch: BatchId, notices: &[Notice], at: Millis) {
    let mut tx = place.db.begin().await.expect("begin");
    outbox::enqueue(&mut tx, batch, None, notices, at).await.expect("mails");
    tx.commit().await.expect("commit");
}

async fn take(place: &Place, who: &NodeId, now: Millis, until: Millis) -> Vec<ClaimedNotification> {
    let mut tx = place.db.begin().await.expect("begin");
    let taken = outbox::claim(&mut tx, who, now, until, 10).await.expect("claim");
    tx.commit().await.expect("commit");
    taken
}

async fn mark(place: &Place, who: &NodeId, id: i64, mark: &DeliveryMark, now: Millis) -> bool {
    let mut tx = place.db.begin().await.expect("begin");
    let done = outbox::mark_notice(&mut tx, who, id, mark, now).await.expect("mark");
    tx.commit().await.expect("commit");
    done
}

async fn all(place: &Place) -> Vec<NotificationRow> {
    let mut tx = place.db.begin_read().await.expect("read");
    let mut rows =
        outbox::list_notifications(&mut tx, &OutboxFilter::default(), 100).await.expect("list");
    rows.reverse();
    rows
}

fn sent() -> DeliveryMark {
    DeliveryMark::Sent { subject: "s".to_owned(), body: "b".to_owned() }
}

pub(super) async fn mails_wait_in_the_outbox(place: Place) {
    let (batch, row) = running(&place).await;
    let mut mails =
        [notice("gl@bank.example", NotifyWhen::Now), notice("channel:ops", NotifyWhen::Now)];
    mails[1].to.lang = Some(Lang::Zh);
    let mut tx = place.db.begin().await.expect("begin");
    outbox::enqueue(&mut tx, batch, row.queue_id, &[], T0).await.expect("none");
    outbox::enqueue(&mut tx, batch, row.queue_id, &mails, later(3)).await.expect("mails");
    tx.commit().await.expect("commit");
    let mut tx = place.db.begin_read().await.expect("read");
    let rows =
        tx.fetch_all("SELECT * FROM email_notifications ORDER BY id", &[]).await.expect("rows");
    assert_eq!(rows.len(), 2);
    for (row_of, mail) in rows.iter().zip(&mails) {
        let text = |column: &str| row_of.get_text(column).expect("text");
        let int = |column: &str| row_of.get_int(column).expect("int");
        let lang = mail.to.lang.unwrap_or_default();
        assert_eq!(text("recipient_email"), mail.to.address);
        assert_eq!(text("subject"), mail.letter.subject_line(lang));
        assert_eq!(text("body"), mail.letter.plain(lang));
        assert_eq!((text("status"), text("type")), ("pending".to_owned(), "failed".to_owned()));
        assert_eq!((int("retry_count"), int("is_system")), (0, 1));
        assert_eq!((int("queue_id"), int("batch_id")), (row.queue_id.0, batch.0));
        assert_eq!(row_of.opt_time("send_time").expect("time"), None);
        assert_eq!(row_of.opt_text("fail_reason").expect("text"), None);
        for column in ["created_at", "updated_at", "next_at"] {
            assert_eq!(Millis::from(row_of.get_time(column).expect("time")), later(3));
        }
        assert_eq!((text("group_code"), text("job_code")), ("g".to_owned(), "总账".to_owned()));
    }
    drop(tx);
    let shown = all(&place).await;
    assert_eq!(shown[1].letter, mails[1].letter);
    assert_eq!((shown[0].lang.as_deref(), shown[1].lang.as_deref()), (None, Some("zh")));
}

pub(super) async fn what_is_told_once_is_told_each_recipient_once(place: Place) {
    let (batch, _) = running(&place).await;
    let key = Some("late_finish:1:7".to_owned());
    let once = |to: &str| Notice { event_key: key.clone(), ..notice(to, NotifyWhen::Now) };
    put(&place, batch, &[once("a@b.example")], T0).await;
    put(&place, batch, &[once("a@b.example"), once("c@b.example")], later(1)).await;
    let plain = notice("a@b.example", NotifyWhen::Now);
    put(&place, batch, &[plain.clone(), plain], later(2)).await;
    let to: Vec<String> = all(&place).await.into_iter().map(|row| row.recipient).collect();
    assert_eq!(to, ["a@b.example", "c@b.example", "a@b.example", "a@b.example"]);
}

pub(super) async fn a_mail_is_taken_by_one_and_marked_by_who_has_it(place: Place) {
    let (batch, _) = running(&place).await;
    put(
        &place,
        batch,
        &[notice("a@b.example", NotifyWhen::Now), notice("c@b.example", NotifyWhen::Now)],
        T0,
    )
    .await;
    let before = Millis(T0.0 - 1);
    assert_eq!(take(&place, &me(), before, later(60_000)).await, []);
    let mine = take(&place, &me(), T0, later(60_000)).await;
    assert_eq!(mine.len(), 2);
    assert_eq!(take(&place, &other(), later(1), later(60_001)).await, []);
    let (first, second) = (mine[0].id, mine[1].id);
    assert!(!mark(&place, &other(), first, &sent(), later(2)).await, "another's");
    assert!(mark(&place, &me(), first, &sent(), later(2)).await);
    assert!(!mark(&place, &me(), first, &sent(), later(3)).await, "it went");
    let again = DeliveryMark::Again(later(30_000), "451 later".to_owned());
    assert!(mark(&place, &me(), second, &again, later(2)).await);
    let rows = all(&place).await;
    assert_eq!(
        (rows[0].status, rows[0].sent, rows[0].next_at),
        (MailStatus::Sent, Some(later(2)), None)
    );
    assert_eq!((rows[0].subject.as_str(), rows[0].body.as_str()), ("s", "b"));
    assert_eq!((rows[1].status, rows[1].failed), (MailStatus::Pending, 1));
    assert_eq!(
        (rows[1].next_at, rows[1].reason.as_deref()),
        (Some(later(30_000)), Some("451 later"))
    );
    assert_eq!(take(&place, &other(), later(29_999), later(90_000)).await, []);
    let theirs = take(&place, &other(), later(30_000), later(90_000)).await;
    assert_eq!((theirs.len(), theirs[0].failed), (1, 1));
    let failed = DeliveryMark::Failed("550 nobody".to_owned());
    assert!(mark(&place, &other(), second, &failed, later(30_001)).await);
    let row = all(&place).await.remove(1);
    assert_eq!((row.status, row.failed, row.next_at), (MailStatus::Failed, 2, None));
}

pub(super) async fn what_a_dead_process_took_is_due_again(place: Place) {
    let (batch, _) = running(&place).await;
    put(&place, batch, &[notice("a@b.example", NotifyWhen::Now)], T0).await;
    let taken = take(&place, &me(), T0, later(60_000)).await;
    assert_eq!(take(&place, &other(), later(59_999), later(120_000)).await, []);
    let theirs = take(&place, &other(), later(60_000), later(120_000)).await;
    assert_eq!(theirs, taken, "the same letter, not counted as a failure");
    assert!(!mark(&place, &me(), taken[0].id, &sent(), later(60_001)).await, "too late");
    assert!(mark(&place, &other(), taken[0].id, &sent(), later(60_002)).await);
}

async fn due(place: &Place, day: Millis, now: Millis) -> usize {
    let mut tx = place.db.begin().await.expect("begin");
    let waiting = outbox::due_digests(&mut tx, day).await.expect("digests");
    for one in &waiting {
        let letters: Vec<&Notification> = one.letters.iter().map(|l| &l.letter).collect();
        outbox::put_together(&mut tx, one, &digest(&letters), now).await.expect("digest");
    }
    tx.commit().await.expect("commit");
    waiting.len()
}

pub(super) async fn a_digest_takes_the_place_of_its_letters(place: Place) {
    let (batch, _) = running(&place).await;
    let mails = [
        notice("a@b.example", NotifyWhen::Batch),
        notice("c@b.example", NotifyWhen::Batch),
        notice("a@b.example", NotifyWhen::Batch),
    ];
    put(&place, batch, &mails, T0).await;
    assert_eq!(take(&place, &me(), later(1), later(60_000)).await, [], "they wait");
    assert_eq!(due(&place, T0, later(2)).await, 0, "its batch runs");
    let mut tx = place.db.begin().await.expect("begin");
    let there = batch::get(&mut tx, batch).await.expect("batch");
    let owner = there.owner.clone().expect("an owner");
    batch::finish_all(&mut tx, &[(there.clone(), BatchStatus::Failed)], &owner, later(3))
        .await
        .expect("finish");
    tx.commit().await.expect("commit");
    assert_eq!(due(&place, T0, later(4)).await, 2);
    assert_eq!(due(&place, T0, later(5)).await, 0, "once");
    let rows = all(&place).await;
    let words: Vec<(&str, &str, &str)> =
        rows.iter().map(|r| (r.status.as_str(), r.event.as_str(), r.recipient.as_str())).collect();
    assert_eq!(
        words,
        [
            ("digest", "failed", "a@b.example"),
            // What is only one goes out as it is.
            ("pending", "failed", "c@b.example"),
            ("digest", "failed", "a@b.example"),
            ("pending", "digest", "a@b.example"),
        ]
    );
    assert_eq!((rows[0].digest, rows[2].digest), (Some(rows[3].id), Some(rows[3].id)));
    let taken = take(&place, &me(), later(6), later(60_000)).await;
    let events: Vec<NotificationEvent> = taken.iter().map(|mail| mail.event).collect();
    assert_eq!(events, [NotificationEvent::Failed, NotificationEvent::Digest]);
    assert_eq!(taken[1].letter.items.len(), 2);
}

pub(super) async fn a_days_digest_waits_for_its_hour(place: Place) {
    let (batch, _) = running(&place).await;
    let mails = [notice("a@b.example", NotifyWhen::Day), notice("a@b.example", NotifyWhen::Day)];
    put(&place, batch, &mails, later(10)).await;
    assert_eq!(due(&place, later(10), later(11)).await, 0, "the hour was before they were written");
    assert_eq!(due(&place, later(11), later(11)).await, 1);
    assert_eq!(take(&place, &me(), later(11), later(60_000)).await.len(), 1);
}

pub(super) async fn mails_are_sent_again_acknowledged_and_purged(place: Place) {
    let (batch, _) = running(&place).await;
    let mails = ["a@b.example", "c@b.example", "d@b.example"].map(|to| notice(to, NotifyWhen::Now));
    put(&place, batch, &mails, T0).await;
    let taken = take(&place, &me(), T0, later(60_000)).await;
    let ids: Vec<i64> = taken.iter().map(|mail| mail.id).collect();
    mark(&place, &me(), ids[0], &sent(), later(1)).await;
    mark(&place, &me(), ids[1], &DeliveryMark::Failed("550".to_owned()), later(1)).await;
    let mut tx = place.db.begin().await.expect("begin");
    // The third is on its way.
    assert_eq!(outbox::resend(&mut tx, &ids, later(2)).await.expect("resend"), 2);
    tx.commit().await.expect("commit");
    let again = take(&place, &other(), later(2), later(60_000)).await;
    assert_eq!(
        again.iter().map(|mail| (mail.id, mail.failed)).collect::<Vec<_>>(),
        [(ids[0], 0), (ids[1], 0)]
    );
    for id in &ids[..2] {
        let again = DeliveryMark::Again(later(40_000), "451".to_owned());
        assert!(mark(&place, &other(), *id, &again, later(3)).await);
    }
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(
        outbox::acknowledge(&mut tx, &ids[..1], "li: known", later(4)).await.expect("ack"),
        1
    );
    let every = OutboxFilter::default();
    let young = outbox::purge(&mut tx, &every, T0, 0).await.expect("purge");
    assert_eq!(young, (0, None), "too young");
    let gone = outbox::purge(&mut tx, &every, later(5), 0).await.expect("purge");
    assert_eq!(gone, (1, Some(ids[2])), "what waits stays");
    assert_eq!(outbox::purge(&mut tx, &every, later(5), ids[2]).await.expect("purge"), (0, None));
    tx.commit().await.expect("commit");
    let left: Vec<i64> = all(&place).await.iter().map(|row| row.id).collect();
    assert_eq!(left, ids[1..]);
}

pub(super) async fn a_snooze_lasts_and_ends(place: Place) {
    let (batch, _) = running(&place).await;
    put(&place, batch, &[notice("a@b.example", NotifyWhen::Now)], T0).await;
    let taken = take(&place, &me(), T0, later(60_000)).await;
    let wish = Snooze {
        id: 0,
        group: "g".to_owned(),
        job: Some("总账".to_owned()),
        event: Some(NotificationEvent::Failed),
        until: later(100_000),
        by: "li".to_owned(),
        reason: "known".to_owned(),
    };
    let mut tx = place.db.begin().await.expect("begin");
    let id = outbox::snooze(&mut tx, &wish, T0).await.expect("snooze");
    assert_eq!(
        outbox::snoozes(&mut tx, later(99_999)).await.expect("all"),
        [Snooze { id, ..wish }]
    );
    assert_eq!(outbox::snoozes(&mut tx, later(100_000)).await.expect("all"), []);
    outbox::put_off(&mut tx, &me(), &[taken[0].id], later(100_000), "snoozed").await.expect("wait");
    tx.commit().await.expect("commit");
    assert_eq!(take(&place, &me(), later(60_000), later(120_000)).await, []);
    let mut tx = place.db.begin().await.expect("begin");
    assert_eq!(outbox::end_snooze(&mut tx, id + 1, later(70_000)).await.expect("none"), None);
    assert!(outbox::end_snooze(&mut tx, id, later(70_000)).await.expect("end").is_some());
    tx.commit().await.expect("commit");
    let now = take(&place, &me(), later(70_000), later(120_000)).await;
    assert_eq!(
        now.iter().map(|mail| mail.failed).collect::<Vec<_>>(),
        [0],
        "waiting is no failure"
    );
}
