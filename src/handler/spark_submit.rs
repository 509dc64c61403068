//! SPARK with a master: `spark-submit` on this node in client mode. It is a script with a
//! supervisor, so the driver ends with its attempt whatever happens to this process.

use crate::domain::job::application::spark::{ApplicationIdentity, find_cause, submit_command};
use crate::domain::job::application::{ApplicationCall, application_key};
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome};
use crate::handler::remote_application::fill_arguments;
use crate::handler::script::{self, ScriptHandler};
use crate::handler::{AttemptTask, Context, WorkerHandler};
use std::path::Path;

/// Runs one attempt.
pub(crate) async fn run(task: &AttemptTask, ctx: &Context) -> AttemptOutcome {
    match write_command(task) {
        Ok(command) => {
            let mut task = task.clone();
            (task.job.script, task.job.interpreter) = (Some(command), None);
            script::run_script(&task, ctx, find_cause).await
        }
        Err(cause) => {
            let said = format!("{cause}; nothing was submitted");
            AttemptOutcome::ended(AttemptEnd::Failed, said).before_it_began()
        }
    }
}

/// Ends what the last attempt, whose worker died, left running here.
pub(crate) async fn end_orphan(task: &AttemptTask, ctx: &Context) -> AttemptOutcome {
    ScriptHandler.end_orphan(task, ctx).await
}

/// The script of an attempt.
fn write_command(task: &AttemptTask) -> Result<String, String> {
    let call = task.job.application.as_deref().ok_or("the job has no application")?;
    let home = call.spark.spark_home.as_deref().ok_or("the job names no spark_home")?;
    let args = fill_arguments(call, task)?;
    let program = format!("{home}/bin/spark-submit");
    find_files(call, &program)?;
    let key = application_key(&task.idem_key, task.attempt);
    let who = ApplicationIdentity { name: &task.idem_key, key: &key };
    let words = submit_command(call, &args, who);
    let words: Vec<String> = words.iter().map(|word| quote_argument(word)).collect();
    // Without `exec` the shell would be the parent of the driver, and report its signals as codes.
    let program = quote_argument(&program);
    Ok(format!("SPARK_HOME={} exec {program} {}\n", quote_argument(home), words.join(" ")))
}

/// Refuses files that are not here.
fn find_files(call: &ApplicationCall, program: &str) -> Result<(), String> {
    if !Path::new(program).is_file() {
        return Err(format!("{program} is not on this node; correct spark_home"));
    }
    let all = [&call.file].into_iter().chain(&call.spark.jars).chain(&call.spark.py_files);
    let missing = all.into_iter().find(|file| is_missing(file));
    missing.map_or(Ok(()), |file| Err(format!("file {file} is not on this node")))
}

/// Whether the text is a path, or a URL of a file, where nothing is.
pub(crate) fn is_missing(file: &str) -> bool {
    let path = file.strip_prefix("file:").unwrap_or(file);
    let path = path.strip_prefix("//").map_or(path, |rest| rest);
    path.starts_with('/') && !Path::new(path).exists()
}

fn quote_argument(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_stays_one_word_of_the_shell() {
        for (text, word) in
            [("", "''"), ("a b", "'a b'"), ("$(x)", "'$(x)'"), ("it's", r"'it'\''s'")]
        {
            assert_eq!(quote_argument(text), word);
        }
    }

    #[test]
    fn only_a_path_of_this_node_can_be_missing() {
        for (file, is) in [
            ("/no/such.jar", true),
            ("file:/no/such.jar", true),
            ("file:///no/such.jar", true),
            ("/", false),
            ("hdfs://n/no.jar", false),
            ("https://n/no.jar", false),
        ] {
            assert_eq!(is_missing(file), is, "{file}");
        }
    }
}
