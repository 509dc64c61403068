//! A call that no further attempt could make: not tried again, and told with what was meant.

use crate::cli::said;
use crate::preflight::make_login;
use crate::util::bench::{Bench, Ran};
use crate::util::{Scratch, with_scratch};
use procession::domain::job::outcome::{AttemptEnd, Retry};
use procession::domain::job::{ParamMode, ParamType};
use procession::domain::source::DialectName;

fn assert_refused(ran: &Ran, parts: &[&str]) {
    assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{}", ran.text());
    assert_eq!(ran.outcome.retry, Retry::Never, "{}", ran.message());
    for part in ["of job GL", "source 'ledger'", "it is not tried again"].iter().chain(parts) {
        assert!(ran.message().contains(part), "{part}\n{}", ran.message());
    }
}

async fn make_routines(db: &Scratch) {
    match db.dialect {
        DialectName::Postgres => {
            db.setup(&[
                "CREATE SCHEMA fin",
                "CREATE PROCEDURE sp_close (p_no int) LANGUAGE sql AS 'SELECT 1'",
                "CREATE PROCEDURE fin.sp_archive () LANGUAGE sql AS 'SELECT 1'",
            ])
            .await;
        }
        DialectName::Mysql | DialectName::Sqlite => {
            db.setup(&[
                "CREATE PROCEDURE sp_close (IN p_no INT) DO 1",
                "CREATE PROCEDURE sp_archive () DO 1",
            ])
            .await;
        }
    }
}

async fn what_is_not_there_is_refused_with_what_was_meant(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        make_routines(&db).await;
        let no = |bench: Bench| bench.param("p_no", ParamMode::In, ParamType::Int, Some("1"));
        let ran = no(Bench::proc(&db, "sp_clsoe")).run().await;
        assert_refused(&ran, &["there is no procedure 'sp_clsoe'", "did you mean sp_close?"]);
        let ran = Bench::proc(&db, "other.sp_archive").run().await;
        let there = match dialect {
            DialectName::Postgres => "did you mean fin.sp_archive?".to_owned(),
            _ => format!("did you mean {}.sp_archive?", db.name),
        };
        assert_refused(&ran, &["in schema 'other'", &there]);
        let ran = Bench::proc(&db, "nothing_like_it").run().await;
        assert_refused(&ran, &["there is no procedure 'nothing_like_it'"]);
        assert!(!ran.message().contains("did you mean"), "{}", ran.message());
        let ran = Bench::proc(&db, "sp_close").run().await;
        assert_refused(&ran, &["the job gives 0 parameters, but 1 are in procedure"]);
        let ran = Bench::proc(&db, "sp close").run().await;
        assert_refused(&ran, &["use name or schema.name"]);
        let ran = no(Bench::proc(&db, "sp_close")).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    })
    .await;
}

/// The server shows the routine, and refuses to run it; a right that is missing inside is another matter.
async fn without_the_right_to_execute_it_is_refused(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let login = make_login(&db).await;
        let (with_right, without) = match dialect {
            DialectName::Postgres => {
                db.setup(&[
                    "CREATE TABLE t (a int)",
                    "CREATE PROCEDURE closed () LANGUAGE plpgsql AS $$ BEGIN NULL; END $$",
                    "REVOKE EXECUTE ON PROCEDURE closed FROM PUBLIC",
                    "CREATE PROCEDURE outer_one () LANGUAGE plpgsql AS $$ BEGIN CALL closed(); END $$",
                ])
                .await;
                ("public.outer_one", "public.closed")
            }
            DialectName::Mysql | DialectName::Sqlite => {
                db.setup(&[
                    "CREATE PROCEDURE closed () SQL SECURITY INVOKER DO 1",
                    "CREATE PROCEDURE outer_one () SQL SECURITY INVOKER CALL closed()",
                    &format!("GRANT ALTER ROUTINE ON PROCEDURE closed TO {}", login.name),
                    &format!("GRANT EXECUTE ON PROCEDURE outer_one TO {}", login.name),
                ])
                .await;
                ("outer_one", "closed")
            }
        };
        let ran = Bench::proc(&db, without).at(&login.url).run().await;
        let grant = match dialect {
            DialectName::Postgres => "GRANT EXECUTE ON PROCEDURE public.closed".to_owned(),
            _ => format!("GRANT EXECUTE ON PROCEDURE {}.closed", db.name),
        };
        assert_refused(&ran, &[&grant]);
        let ran = Bench::proc(&db, with_right).at(&login.url).run().await;
        assert_eq!((ran.outcome.end, ran.outcome.retry), (AttemptEnd::Failed, Retry::Allowed));
        login.drop(&db).await;
    })
    .await;
}

async fn a_batch_is_not_kept_waiting_by_retries(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let folder = tempfile::tempdir().expect("folder");
        let yaml = format!(
            "sources: {{s: {{url: '{}'}}}}
defaults: {{type: PROC, source: s, retry_count: 3, retry_delay_sec: 600}}
jobs: {{A: {{proc_name: sp_clsoe}}}}
",
            db.url
        );
        std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
        let path = folder.path().to_owned();
        let ran = tokio::task::spawn_blocking(move || {
            let (code, _, error) =
                said(&path, &["run", "dag.yaml", "--batch-no", "1", "-q", "--no-connect"]);
            assert_eq!(code, 1, "{error}");
            said(&path, &["batch", "show", "1", "--json"])
        })
        .await
        .expect("ran");
        assert!(ran.1.contains("sp_clsoe") && ran.1.contains("it is not tried again"), "{}", ran.1);
    })
    .await;
}

macro_rules! on_each {
    ($module:ident $dialect:ident: $($name:ident)*) => {
        mod $module { $(#[tokio::test] async fn $name() {
            super::$name(super::DialectName::$dialect).await;
        })* }
    };
}

on_each!(mariadb Mysql: a_batch_is_not_kept_waiting_by_retries
    what_is_not_there_is_refused_with_what_was_meant without_the_right_to_execute_it_is_refused);
on_each!(postgres Postgres: a_batch_is_not_kept_waiting_by_retries
    what_is_not_there_is_refused_with_what_was_meant without_the_right_to_execute_it_is_refused);
