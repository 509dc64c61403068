//! Scripts that are sent along: only to executors whose group allows it, under a version that is made of the text.

use super::hall::{APP, Hall};
use super::on_each;
use crate::xxl::program_of_others::Program;
use procession::domain::batch::BatchStatus;
use procession::domain::executor::{Addressing, GluePolicy};
use serde_json::Value;

on_each! {
    a_script_is_not_sent_unless_its_group_allows_it
    a_script_has_the_version_of_its_text
}

fn script(text: &str) -> String {
    format!("type: GLUE, executor: {{ app: {APP}, language: shell }}, script: '{text}'")
}

async fn a_script_is_not_sent_unless_its_group_allows_it(mut hall: Hall) {
    hall.with_pay(&script("echo paid")).await;
    let id = hall.open("202407").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    let (status, said) = hall.pay(id).await;
    assert_eq!(status, "FAILED");
    assert_eq!(
        said,
        "no executor was asked: scripts may not be sent to executor group pay-executor; whoever administers \
         it can allow that: procession executor-group set pay-executor --allow-glue"
    );
    assert_eq!(hall.runs().await, ["1 DONE REFUSED"]);
    assert!(hall.programs[0].called().is_empty(), "it was asked something");
    // Its handlers are called as before.
    hall.with("").await;
    let id = hall.open("202408").await;
    hall.comes_to(&["1 DONE REFUSED", "2 RUNNING"]).await;
    hall.tell(2, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
}

async fn a_script_has_the_version_of_its_text(mut hall: Hall) {
    let addresses = hall.programs.iter().map(Program::url).collect();
    hall.group_with(Addressing::Fixed(addresses), GluePolicy::Allowed).await;
    let mut versions = Vec::new();
    for (log, no, text) in
        [(1, "202406", "echo paid"), (2, "202407", "echo paid"), (3, "202408", "echo \"$1\" 已付")]
    {
        hall.with_pay(&script(text)).await;
        hall.clock.advance(1_000);
        let id = hall.open(no).await;
        let running = format!("{log} RUNNING");
        hall.until("sent", async |hall| hall.runs().await.last() == Some(&running)).await;
        let asked = hall.programs[0].heard("/run").pop().expect("a run");
        assert_eq!(asked.as_object().expect("an object").len(), 12, "{asked}");
        assert_eq!(
            (&asked["glueType"], &asked["glueSource"]),
            (&"GLUE_SHELL".into(), &text.into())
        );
        assert_eq!(asked["executorHandler"], "");
        let params = asked["executorParams"].as_str().expect("text");
        let params: Value = serde_json::from_str(params).expect("JSON");
        assert_eq!((&params["batchNo"], &params["params"]["branch"]), (&no.into(), &"SH".into()));
        versions.push(asked["glueUpdatetime"].as_i64().expect("a number"));
        hall.tell(log, 200, "").await;
        assert_eq!(hall.ends(id).await, BatchStatus::Success);
    }
    assert!(versions[0] > 0 && versions[0] == versions[1], "{versions:?}");
    assert_ne!(versions[1], versions[2]);
    assert_eq!(hall.programs[0].heard("/run").len(), 3);
}
