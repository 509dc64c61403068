//! Executors of 3.5, which show their name when they register: they are asked as 3.5 asks, and called by their name.

use super::hall::{APP, Hall};
use super::on_each;
use crate::xxl::program_of_others::TOKEN;
use procession::domain::batch::BatchStatus;
use procession::domain::executor::{Addressing, GluePolicy, LogId};
use procession::engine::xxl::admin::registry_api::{ExecutorApi, VerifiedToken};
use procession::store::executor_run::ReportedRunEnd;
use procession::wire::xxl::XxlDialect;
use serde_json::json;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

on_each! {
    one_that_shows_its_name_is_triggered
    one_that_shows_its_name_is_stopped
    one_that_was_silent_is_called_by_its_name
    one_is_asked_as_it_registered_last
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const OTHERS: XxlDialect = XxlDialect::D1;

/// The desk at which the executor registers, as one of this version.
async fn registers(hall: &Hall, dialect: XxlDialect) -> (ExecutorApi, VerifiedToken) {
    let name = (dialect == XxlDialect::D3).then_some(APP.as_bytes());
    let desk = ExecutorApi::new(hall.db.clone(), hall.clock.clone(), Vec::new());
    let pass = desk.admit(TOKEN.as_bytes(), name).await.expect("a database").expect("a pass");
    let url = hall.programs[0].url();
    desk.register(&pass, APP, &url, HERE).await.expect("a database").expect("it may");
    hall.programs[0].speaks(dialect);
    (desk, pass)
}

/// A hall whose executors say where they are; one of 3.5 has.
async fn with_3_5(hall: &Hall) -> (ExecutorApi, VerifiedToken) {
    hall.group_with(Addressing::Registered, GluePolicy::Refused).await;
    registers(hall, XxlDialect::D3).await
}

fn called_by_its_name() -> BTreeSet<Option<String>> {
    BTreeSet::from([Some(APP.to_owned())])
}

async fn one_that_shows_its_name_is_triggered(mut hall: Hall) {
    let (desk, pass) = with_3_5(&hall).await;
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    let program = &hall.programs[0];
    let [asked] = &program.heard("/trigger")[..] else { panic!("{:?}", program.heard("/trigger")) };
    let sent = asked["logDateTime"].as_i64().expect("a time");
    let params = asked["executorParams"].clone();
    assert!(
        params.as_str().is_some_and(|text| text.contains("\"batchNo\":\"202407\"")),
        "{params}"
    );
    assert_eq!(
        *asked,
        json!({
            "jobId": 1, "executorHandler": "payHandler", "executorParams": params,
            "executorBlockStrategy": "SERIAL_EXECUTION", "executorTimeout": 0, "logId": 1,
            "logDateTime": sent, "glueType": "BEAN", "glueSource": "", "glueUpdatetime": sent,
            "broadcastIndex": 0, "broadcastTotal": 1,
        })
    );
    program.prints(1, "paid 3 branches");
    hall.pass(3).await;
    let told = ReportedRunEnd { log_id: LogId(1), code: 200, msg: Some("done".to_owned()) };
    hall.programs[0].ends(1);
    desk.callback(&pass, vec![told]).await.expect("a database").expect("it may");
    hall.process.executors().look_soon().await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.lines().await, ["paid 3 branches"]);
    let program = &hall.programs[0];
    let logs = program.heard("/log");
    assert_eq!(logs[0], json!({"logId": 1, "fromLineNum": 1, "logDateTime": sent}));
    assert!(logs.iter().all(|log| log["logDateTime"] == sent && log.get("logDateTim").is_none()));
    assert!(program.heard("/run").is_empty());
    assert_eq!(program.called(), called_by_its_name());
}

async fn one_that_shows_its_name_is_stopped(mut hall: Hall) {
    with_3_5(&hall).await;
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.stop(id).await;
    hall.until("killed", async |hall| {
        hall.clock.advance(300);
        hall.process.results().contains_key(&id)
    })
    .await;
    assert_eq!(hall.pay(id).await.0, "KILLED");
    let program = &hall.programs[0];
    assert_eq!(program.heard("/kill"), [json!({"jobId": 1})]);
    let looks = program.heard("/idleBeat");
    // How many there are depends on how busy the machine is.
    assert!(
        !looks.is_empty() && looks.iter().all(|look| *look == json!({"jobId": 1})),
        "{looks:?}"
    );
    assert_eq!(program.called(), called_by_its_name());
    assert_eq!(program.has(), [0; 0]);
}

/// While nobody serves, executors cannot say that they are there; whoever goes on with their runs looks at them
/// before they have said so again.
async fn one_that_was_silent_is_called_by_its_name(mut hall: Hall) {
    with_3_5(&hall).await;
    let id = hall.open("202407").await;
    hall.comes_to(&["1 RUNNING"]).await;
    hall.clock.advance(300_000);
    hall.dies().await;
    hall.until("looked at", async |hall| !hall.programs[0].heard("/idleBeat").is_empty()).await;
    hall.programs[0].prints(1, "paid 3 branches");
    hall.tell(1, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
    assert_eq!(hall.lines().await, ["paid 3 branches"]);
    assert_eq!(hall.programs[0].called(), called_by_its_name());
    // What is new goes nowhere until it has.
    let id = hall.open("202408").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Failed);
    let said = hall.pay(id).await.1;
    assert!(said.ends_with("no executor of group pay-executor is registered"), "{said}");
    registers(&hall, XxlDialect::D3).await;
    let id = hall.open("202409").await;
    hall.comes_to(&["1 DONE 200", "2 DONE NOT_REACHED", "3 RUNNING"]).await;
    hall.tell(3, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
}

async fn one_is_asked_as_it_registered_last(mut hall: Hall) {
    with_3_5(&hall).await;
    for (log, dialect) in [(1, XxlDialect::D3), (2, OTHERS), (3, XxlDialect::D3)] {
        registers(&hall, dialect).await;
        let id = hall.open(&format!("20240{log}")).await;
        let running = format!("{log} RUNNING");
        hall.until("sent", async |hall| hall.runs().await.last() == Some(&running)).await;
        hall.tell(log, 200, "").await;
        assert_eq!(hall.ends(id).await, BatchStatus::Success);
    }
    let logs = |path| -> Vec<_> {
        hall.programs[0].heard(path).iter().map(|asked| asked["logId"].clone()).collect()
    };
    assert_eq!((logs("/trigger"), logs("/run")), (vec![json!(1), json!(3)], vec![json!(2)]));
    // Where an operator has said where it is, it is asked as it says itself.
    let addresses = vec![hall.programs[0].url()];
    hall.group_with(Addressing::Fixed(addresses), GluePolicy::Refused).await;
    let id = hall.open("202404").await;
    hall.until("sent", async |hall| hall.programs[0].heard("/trigger").len() == 3).await;
    hall.tell(4, 200, "").await;
    assert_eq!(hall.ends(id).await, BatchStatus::Success);
}
