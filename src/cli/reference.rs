//! The command line reference in Markdown: docs/cli.md, which a test compares.

use crate::cli::Cli;
use crate::cli::help::GROUPS;
use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _};
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Command line

<!-- Written by `make docs`; changes by hand are lost. -->

Every command with its arguments, from the program's own help; `procession COMMAND --help` prints it.
There are completions for shells (`procession completions bash`) and manual pages
(`procession man FOLDER`).
";

/// The page: commands in the groups of `--help`, each with its subcommands, arguments and options.
pub fn reference_page() -> String {
    let mut command = Cli::command();
    command.build();
    let mut page = INTRODUCTION.to_owned();
    if let Some(codes) = command.get_after_help() {
        let _ = write!(page, "\n{codes}.\n");
    }
    write_overview(&mut page, &command);
    page.push_str("\n## Options of every command\n");
    let global = command.get_arguments().filter(|option| option.is_global_set());
    write_arguments(&mut page, global);
    for (heading, verbs) in GROUPS {
        let _ = write!(page, "\n## {heading}\n");
        for verb in verbs.iter().filter_map(|name| command.find_subcommand(name)) {
            write_command(&mut page, verb, verb.get_name(), 3);
        }
    }
    page
}

/// One line per command, with a link to its section.
fn write_overview(page: &mut String, command: &Command) {
    page.push_str("\n| to | command | does |\n|---|---|---|\n");
    for (heading, verbs) in GROUPS {
        for (place, name) in verbs.iter().enumerate() {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let heading = if place == 0 { heading } else { "" };
            let _ = writeln!(page, "| {heading} | [`{name}`](#{name}) | {} |", table_cell(about));
        }
    }
}

/// A command and, below it, its subcommands.
fn write_command(page: &mut String, command: &Command, path: &str, level: usize) {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(StyledStr::to_string).unwrap_or_default();
    let _ = write!(page, "\n{} {path}\n\n{}.\n", "#".repeat(level), about.trim_end_matches('.'));
    let mut shown = command.clone();
    let usage = shown.render_usage().to_string();
    let _ = write!(page, "\n```text\n{}\n```\n", usage.trim());
    let own = command.get_arguments().filter(|argument| {
        !argument.is_global_set() && !["help", "version"].contains(&argument.get_id().as_str())
    });
    write_arguments(page, own.filter(|argument| !argument.is_hide_set()));
    // `help` has a subcommand for each command, and each command has a `help`; neither needs
    // explaining.
    let is_help = command.get_name() == "help";
    for below in command.get_subcommands().filter(|below| !is_help && below.get_name() != "help") {
        write_command(page, below, &format!("{path} {}", below.get_name()), level + 1);
    }
}

fn write_arguments<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let mut rows = arguments.map(argument_row).peekable();
    if rows.peek().is_none() {
        return;
    }
    page.push_str("\n| argument | meaning |\n|---|---|\n");
    page.extend(rows);
}

fn argument_row(argument: &Arg) -> String {
    let mut name = String::new();
    if let Some(short) = argument.get_short() {
        let _ = write!(name, "-{short}, ");
    }
    if let Some(long) = argument.get_long() {
        let _ = write!(name, "--{long}");
    }
    if argument.get_action().takes_values() {
        let values = argument.get_value_names().unwrap_or_default();
        let values: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
        let gap = if name.is_empty() { "" } else { " " };
        let _ = write!(name, "{gap}<{}>", values.join("> <"));
    }
    let mut meaning = table_cell(argument.get_long_help().or(argument.get_help()));
    let possible = argument.get_possible_values();
    let possible: Vec<&str> =
        possible.iter().filter(|value| !value.is_hide_set()).map(|v| v.get_name()).collect();
    if !possible.is_empty() && argument.get_action().takes_values() {
        let _ = write!(meaning, " [one of: {}]", possible.join(", "));
    }
    let defaults = argument.get_default_values().iter().map(|value| value.to_string_lossy());
    let defaults: Vec<_> = defaults.collect();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        let _ = write!(meaning, " [default: {}]", defaults.join(" "));
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(meaning, " [environment: `{}`]", variable.to_string_lossy());
    }
    format!("| `{name}` | {} |\n", meaning.trim())
}

/// A text that fits into a table cell.
fn table_cell(text: Option<&StyledStr>) -> String {
    let text = text.map(StyledStr::to_string).unwrap_or_default();
    let text = text.replace('|', "\\|").replace('<', "&lt;").replace('>', "&gt;");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
