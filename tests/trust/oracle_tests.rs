//! Every body of the oracle runs on every database, and an undisturbed run is judged clean.

use crate::trust::judge::{Answer, Class, Crime, Wanted, judged};
use crate::trust::nodes::House;
use crate::trust::oracle::{self, Job, Keys};
use crate::trust::records;
use crate::trust::targets;
use procession::domain::source::DialectName;

const CLASSES: [Class; 4] = [Class::Once, Class::Repeat, Class::Script, Class::ScriptRepeat];

async fn undisturbed(dialect: DialectName, url: String) {
    oracle::prepare(dialect, &url).await;
    let dir = tempfile::tempdir().expect("a folder");
    let house = House::on(&format!("sqlite:{}", dir.path().join("meta.db").display()), "");
    let fx_file = house.path().join("effects");
    let mut yaml = format!("sources: {{ target: {{ url: \"{url}\" }} }}\njobs:\n");
    let (mut wanted, mut parents) = (Vec::new(), Vec::new());
    for (number, class) in CLASSES.into_iter().cycle().take(8).enumerate() {
        let (code, body) = (format!("J{number}"), number as u64 / 4);
        let (takes_ms, keys) = (20, Keys::Made);
        let (code_, parents_, fx_file) = (&code, &parents, fx_file.as_path());
        let job =
            Job { code: code_, class, dialect, body, takes_ms, parents: parents_, fx_file, keys };
        yaml.push_str(&job.yaml());
        let (name, told, failing) = (("1".to_owned(), code.clone()), 0, 0);
        let (parents_, answer) = (parents.clone(), Answer::Came);
        wanted.push(Wanted { name, class, parents: parents_, told, failing, answer });
        parents = vec![code];
    }
    house.write("dag.yaml", &yaml);
    let (code, _, told) = house.said(&["run", "dag.yaml", "--batch-no", "1", "-q"]);
    assert_eq!(code, 0, "{told}\n{yaml}");
    let mut history =
        records::read(&format!("sqlite:{}", dir.path().join("meta.db").display())).await;
    history.wanted = wanted;
    history.effects = oracle::effects(&url).await;
    history.effects.extend(oracle::effects_in(&fx_file));
    let verdict = judged(&history);
    assert!(verdict.is_clean(), "{verdict}\n{history:#?}");
    assert_eq!(verdict.effects(), 8, "{verdict}");
    // The same with one effect gone, as if it had been lost.
    history.effects.pop();
    assert_eq!(judged(&history).count(Crime::Lost), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undisturbed_run_on_mariadb_is_judged_clean() {
    let dialect = DialectName::Mysql;
    targets::with_database(dialect, |url| async move { undisturbed(dialect, url).await }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undisturbed_run_on_postgres_is_judged_clean() {
    let dialect = DialectName::Postgres;
    targets::with_database(dialect, |url| async move { undisturbed(dialect, url).await }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undisturbed_run_on_sqlite_is_judged_clean() {
    let dir = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", dir.path().join("target.db").display());
    undisturbed(DialectName::Sqlite, url).await;
}
