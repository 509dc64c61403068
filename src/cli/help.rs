//! The list of verbs by purpose, shell completions, and man pages.

use crate::cli::{BadInput, Cli, VerbResult};
use anyhow::{Context as _, Result};
use clap::builder::StyledStr;
use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Verbs by purpose, in the order of `--help`. Each verb is in one group.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Run batches", &["run", "serve", "batch", "backfill", "job", "logs"]),
    (
        "Write definitions",
        &[
            "discover", "check", "lineage", "plan", "apply", "diff", "export", "history",
            "rollback", "dag", "schema", "params",
        ],
    ),
    ("Import from another system", &["import", "executor", "executor-group"]),
    ("Schedules and calendars", &["schedule", "calendar", "event"]),
    ("Approve and reject", &["approve", "reject", "approvals", "change-request"]),
    ("Notifications", &["notify", "outbox"]),
    ("Data sources, secrets and users", &["source", "secret", "user", "ldap", "audit"]),
    ("Operate", &["migrate", "node", "health", "metadata", "retention"]),
    ("Shell", &["completions", "man", "help"]),
];

/// Width of the list of verbs, as of the rest of the help.
const COLUMNS: usize = 100;

/// Arguments of `completions`.
#[derive(Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Args)]
pub(super) struct ManArgs {
    /// Folder for a page of each verb, which is made; without it the page of procession is printed
    folder: Option<PathBuf>,
}

/// The complete command line, with its verbs in groups.
pub(super) fn command() -> Command {
    let mut command = Cli::command();
    // `help` and the lists of all verbs are created here.
    command.build();
    let verbs = grouped_verbs(&command);
    Cli::command().help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}Options:\n{{options}}{{after-help}}"
    ))
}

/// Each group with its verbs and the first sentence of each.
fn grouped_verbs(command: &Command) -> String {
    let width = command.get_subcommands().map(|verb| verb.get_name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (heading, verbs) in GROUPS {
        text.push_str(&format!("{heading}:\n"));
        for name in *verbs {
            let verb = command.find_subcommand(name);
            let about = verb.and_then(Command::get_about).map(StyledStr::to_string);
            // Braces in a template mark placeholders.
            let about = about.unwrap_or_default().replace(['{', '}'], "");
            let lines = wrap_words(&about, COLUMNS - width - 4);
            let indent = format!("\n{:1$}", "", width + 4);
            text.push_str(&format!("  {name:width$}  {}\n", lines.join(&indent)));
        }
        text.push('\n');
    }
    text
}

/// Lines of at most this width.
fn wrap_words(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut();
        match last.filter(|line| line.is_empty() || line.len() + 1 + word.len() <= columns) {
            Some(line) => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Prints the completions of a shell.
pub(super) fn print_completions(args: &CompletionsArgs) -> Result<VerbResult> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "procession", &mut script);
    std::io::stdout().write_all(&script).context("print the completions")?;
    Ok(VerbResult::Well)
}

/// Prints the man page of procession, or writes a page for each verb into a directory.
pub(super) fn write_man_pages(args: &ManArgs) -> Result<VerbResult> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).context("make the page")?;
        std::io::stdout().write_all(&page).context("print the page")?;
        return Ok(VerbResult::Well);
    };
    match write_into(folder) {
        Ok(()) => Ok(VerbResult::Well),
        Err(error) => {
            let folder = folder.display();
            Err(BadInput(format!("cannot write the pages into {folder}: {error}")).into())
        }
    }
}

fn write_into(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_verb_stands_in_one_group() {
        let mut command = Cli::command();
        command.build();
        let there: BTreeSet<&str> = command.get_subcommands().map(Command::get_name).collect();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), there);
        assert_eq!(listed.len(), there.len(), "one is listed twice");
    }

    #[test]
    fn the_help_has_headings_and_every_verb() {
        let help = command().render_help().to_string();
        for text in ["Run batches:\n  run ", "Operate:\n  migrate ", "Options:\n", "Exit codes: 0"]
        {
            assert!(help.contains(text), "{text}: {help}");
        }
        let verbs = help.split("Options:").next().expect("the list of verbs");
        assert!(verbs.lines().all(|line| line.chars().count() <= COLUMNS), "{verbs}");
    }

    #[test]
    fn every_shell_gets_completions() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "procession", &mut script);
            let script = String::from_utf8(script).expect("text");
            assert!(script.contains("force-success"), "{shell}");
        }
    }

    #[test]
    fn each_verb_gets_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        let pages = folder.path().join("man1");
        let done = write_man_pages(&ManArgs { folder: Some(pages.clone()) }).expect("pages");
        assert_eq!(done, VerbResult::Well);
        for page in ["procession.1", "procession-run.1", "procession-batch-open.1"] {
            assert!(pages.join(page).exists(), "{page}");
        }
    }
}
