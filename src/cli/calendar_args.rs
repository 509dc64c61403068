//! Arguments of `calendar`.

use crate::cli::define::remark;
use crate::domain::calendar::{DayKind, Weekend};
use chrono::NaiveDate;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Verbs of `calendar`.
#[derive(Subcommand)]
pub(super) enum CalendarVerb {
    /// Store the days of a file: JSON (ours, or holiday-cn), CSV (date,kind,label) or ICS
    #[command(
        after_help = "The years in the file take the place of the same years; other years and days set by \
                      hand stay. 31 December may stand in the list of the next year."
    )]
    Import(ImportArgs),
    /// Make a calendar without a list of days, to be kept by hand
    Add {
        /// Code
        code: String,
        #[command(flatten)]
        head: CalendarHeadArgs,
        #[command(flatten)]
        why: ReasonArgs,
    },
    /// Make a calendar of others
    #[command(group = clap::ArgGroup::new("members").required(true))]
    Combine {
        /// Code of the combined calendar
        code: String,
        /// A working day is one on which all of these work
        #[arg(long, value_delimiter = ',', value_name = "A,B", group = "members")]
        all_of: Vec<String>,
        /// A working day is one on which any of these works
        #[arg(long, value_delimiter = ',', value_name = "A,B", group = "members")]
        any_of: Vec<String>,
        /// Name for people
        #[arg(long, value_parser = parse_line)]
        name: Option<String>,
        #[command(flatten)]
        why: ReasonArgs,
    },
    /// Set one day by hand; imports leave it alone
    Day {
        /// Code
        code: String,
        /// The day, YYYY-MM-DD
        date: NaiveDate,
        /// off or work; clear takes the day out again
        kind: SetTo,
        /// What the day is called
        #[arg(long, value_parser = parse_line)]
        label: Option<String>,
        /// Why; it is what others will read
        #[arg(long, value_parser = remark)]
        reason: String,
    },
    /// The calendars: weekend, years, and who uses them
    List,
    /// A year, month by month
    Show {
        /// Code
        code: String,
        /// The year [default: this one]
        #[arg(value_parser = clap::value_parser!(i32).range(1..=9999))]
        year: Option<i32>,
    },
    /// Look whether the calendars in use have the days of this year, and from October of the next;
    /// exit code 1 when one has not
    Check,
    /// Print a calendar as a JSON file that import reads
    Export {
        /// Code
        code: String,
        /// Write to this file instead
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Remove a calendar that nothing uses
    Remove {
        /// Code
        code: String,
        /// Why; it is what others will read
        #[arg(long, value_parser = remark)]
        reason: String,
    },
}

/// Arguments of `calendar import`.
#[derive(Args)]
pub(super) struct ImportArgs {
    /// File: .json, .csv or .ics
    pub(super) file: PathBuf,
    /// Code of the calendar [default: what the file says]
    #[arg(long)]
    pub(super) code: Option<String>,
    #[command(flatten)]
    pub(super) head: CalendarHeadArgs,
    /// Years that a CSV or ICS file is complete for [default: those of its days]
    #[arg(
        long = "year",
        value_delimiter = ',',
        value_name = "2025,2026",
        conflicts_with = "by_hand"
    )]
    #[arg(value_parser = clap::value_parser!(i32).range(1..=9999))]
    pub(super) years: Vec<i32>,
    /// The days are exceptions kept by hand, and no list of a year
    #[arg(long)]
    pub(super) by_hand: bool,
    /// Replace the whole calendar: other years and days set by hand go
    #[arg(long)]
    pub(super) replace: bool,
    /// Only print what would change
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) why: ReasonArgs,
}

/// What a calendar says beside its days.
#[derive(Args)]
pub(super) struct CalendarHeadArgs {
    /// Name for people
    #[arg(long, value_parser = parse_line)]
    pub(super) name: Option<String>,
    /// Days of the week that are off: sat,sun or fri,sat or none [default: as it is, else sat,sun]
    #[arg(long, value_name = "DAYS", value_parser = weekend)]
    pub(super) weekend: Option<Weekend>,
}

/// Why something is changed.
#[derive(Args)]
pub(super) struct ReasonArgs {
    /// Why; it is what others will read
    #[arg(long, value_parser = remark)]
    pub(super) reason: Option<String>,
}

/// What a day is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SetTo {
    /// A day off
    Off,
    /// A working day
    Work,
    /// What its weekday says
    Clear,
}

impl SetTo {
    pub(super) fn kind(self) -> Option<DayKind> {
        match self {
            Self::Off => Some(DayKind::Off),
            Self::Work => Some(DayKind::Work),
            Self::Clear => None,
        }
    }
}

fn weekend(text: &str) -> Result<Weekend, String> {
    Weekend::parse(text).map_err(|error| error.to_string())
}

fn parse_line(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > 200 || text.contains(char::is_control) {
        return Err("write 1 to 200 characters on one line".to_owned());
    }
    Ok(text.to_owned())
}
