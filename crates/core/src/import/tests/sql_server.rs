//! SQL Server Agent: what steps run, which follows which, and when.

use super::{given, has_note, import_files, import_text, job, script};
use crate::domain::job::trigger_rule::TriggerRule;
use crate::domain::text::lang::Lang;
use crate::import::{Imported, System, markdown};

const FIXTURE: &str = include_str!("../../../../../tests/data/import/sql_server_agent.json");

fn fixture() -> Imported {
    import_text(System::SqlServerAgent, "agent.json", FIXTURE)
}

fn edges(made: &Imported) -> Vec<String> {
    let all = made.definition.dependencies.iter();
    all.map(|d| format!("{}>{} {}", d.depends_on, d.job_code, d.when)).collect()
}

#[test]
fn steps_follow_their_actions() {
    let made = fixture();
    let wanted = [
        "Nightly_close_load>Nightly_close_post success",
        "Nightly_close_post>Nightly_close_report success",
        "Nightly_close_load>Nightly_close_alarm failure",
        "Nightly_close_post>Nightly_close_alarm failure",
        "Nightly_close_report>Nightly_close_alarm failure",
        "Month_end_copy>Month_end_package done",
        "Month_end_package>Month_end_stamp success",
        "Round_flow>Round_try success",
        "Round_try>Round_again success",
    ];
    assert_eq!(edges(&made), wanted);
    assert_eq!(job(&made, "Nightly_close_alarm").trigger_rule, TriggerRule::OneSuccess);
    assert!(!job(&made, "Nightly_close_by_hand").is_active);
    assert!(has_note(&made, "Round_flow", "round in a circle (try, again)"), "{:?}", made.notes);
    // Its first step may fail and the job go on: the batch is FAILED, the job there was not.
    assert!(has_note(&made, "Month_end", "the action of the last step"), "{:?}", made.notes);
}

#[test]
fn steps_run_the_same_text() {
    let made = fixture();
    let load = job(&made, "Nightly_close_load");
    assert_eq!((load.retry_count, load.retry_delay_sec), (2, 300));
    assert_eq!(load.tags, ["category:GL_close"]);
    let text = script(&made, "Nightly_close_load");
    assert!(
        text.starts_with(
            "set -e\ncat > step.sql <<'END_OF_STEP'\nEXEC dbo.load_day @day = '2026-01-01';\nGO\nEXEC dbo.check_day;\nEND_OF_STEP\n"
        ),
        "{text}"
    );
    assert!(text.ends_with("-d 'bank' -b -x -i step.sql\n"), "{text}");
    assert!(
        script(&made, "Nightly_close_post")
            .contains("EXECUTE AS USER = N'poster';\nEXEC gl.post\n")
    );
    assert!(script(&made, "Nightly_close_alarm").contains("[ \"$ended\" -eq 3 ]"));
    assert!(script(&made, "Nightly_close_report").contains("pwsh -NoProfile"));
    for (code, why) in [
        ("Month_end_copy", "one of Windows"),
        ("Month_end_package", "Integration Services"),
        ("Month_end_stamp", "token $(ESCAPE_SQUOTE(JOBNAME)"),
    ] {
        assert!(has_note(&made, code, why), "{code}: {:?}", made.notes);
        assert!(script(&made, code).contains("exit 1\n"), "{code}");
    }
    assert_eq!(made.definition.groups[0].notify_email, ["ops@bank.example"]);
}

#[test]
fn schedules_fire_as_they_did() {
    let made = fixture();
    for line in [
        "cron: 0 30 1 ? * MON,TUE,WED,THU,FRI",
        "cron: 0 0 22 LW * ?",
        "end: \"2028-01-01T00:00:00\"",
        "manual: true",
    ] {
        assert!(made.text.contains(line), "{line}\n{}", made.text);
    }
    let report = markdown(&made, "SQL Server Agent", Lang::En);
    assert!(
        report
            .contains("jobs: 12 read = 6 carried over + 2 carried over with changes + 4 left out"),
        "{report}"
    );
    assert!(
        report.contains(
            "schedules: 5 read = 2 carried over + 1 carried over with changes + 2 left out"
        ),
        "{report}"
    );
}

#[test]
fn tables_may_be_files_of_csv() {
    let jobs = "job_id;name;enabled;start_step_id\na;Close;1;1\n";
    let steps = "job_id,step_id,step_name,subsystem,command,on_success_action,on_fail_action\n\
                 A,1,one,TSQL,\"EXEC p @x = 'a,b';\nEXEC q\",1,2\n";
    let files = [given("x/SysJobs.csv", jobs), given("msdb.dbo.sysjobsteps.csv", steps)];
    let made = import_files(System::SqlServerAgent, &files).unwrap_or_else(|e| panic!("{e}"));
    assert!(script(&made, "Close_one").contains("EXEC p @x = 'a,b';\nEXEC q\n"));
    let refused = |path: &str, text: &str| {
        let files = [given(path, text)];
        import_files(System::SqlServerAgent, &files)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default()
    };
    assert!(refused("other.csv", jobs).contains("of which table"));
    assert!(refused("sysjobs.csv", jobs).contains("no row of sysjobsteps"));
    assert!(refused("sysjobs.csv", "a,b\n1,2,3\n").contains("sysjobs.csv:2"));
    assert!(refused("sysjobs.json", "[1]").contains("this is no row"));
}
