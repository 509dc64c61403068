//! Keys of the Automation API's JSON.

use super::{KeyCase, Sample};
use crate::import::System;
use crate::import::control_m::keys;
use crate::import::keys::KnownKey;

fn in_job(map: &str) -> String {
    format!(
        r#"{{"F": {{"Type": "Folder", "J": {map}}}, "P": {{"Type": "ConnectionProfile:Database:MySQL"}}, "Q": {{"Type": "ConnectionProfile:Database:PostgreSQL"}}}}"#
    )
}

const INHERITED: [Sample<'_>; 8] = [
    ("When", r#"{"WeekDays": ["MON"]}"#),
    ("RunAs", r#""batch""#),
    ("Host", r#""etl01""#),
    ("Application", r#""GL""#),
    ("SubApplication", r#""close""#),
    ("Variables", r#"[{"x": "1"}]"#),
    ("Priority", r#""High""#),
    ("TimeZone", r#""Europe/Berlin""#),
];

const OF_JOB: [Sample<'_>; 26] = [
    ("Type", r#""Job:Dummy""#),
    ("Name", r#""other""#),
    ("Description", r#""Loads""#),
    ("RunAsDummy", "true"),
    ("Rerun", r#"{"Every": "5"}"#),
    ("RerunIntervals", r#"{"Intervals": ["5m"]}"#),
    ("RerunSpecificTimes", r#"{"At": ["0900"]}"#),
    ("RerunLimit", r#"{"Times": "3"}"#),
    ("Comment", r#""x""#),
    ("CreatedBy", r#""x""#),
    ("ControlmServer", r#""x""#),
    ("Server", r#""x""#),
    ("DocumentationFile", r#""x""#),
    ("DocumentationUrl", r#""x""#),
    ("Documentation", r#""x""#),
    ("ActiveRetentionPolicy", r#""x""#),
    ("DaysKeepActive", "1"),
    ("DaysKeepActiveIfNotOk", "1"),
    ("KeepActiveIfNotOk", "true"),
    ("BusinessFields", r#"[{"a": "b"}]"#),
    ("CreationUser", r#""x""#),
    ("Confirm", "true"),
    ("Critical", "true"),
    ("OverridePath", r#""x""#),
    ("OutputHandling", r#"{"Operation": "Copy"}"#),
    ("EndFolder", "true"),
];

/// Checks the keys of a type of job: those of all jobs were tested with commands.
fn assert_keys_of(kind: &str, known: &[KnownKey], base: &[Sample<'_>], samples: &[Sample<'_>]) {
    let kind = format!("{kind:?}");
    let base: Vec<Sample<'_>> =
        [("Type", kind.as_str())].into_iter().chain(base.iter().copied()).collect();
    let case = KeyCase {
        system: System::ControlM,
        path: "f.json",
        tables: &[known],
        around: &in_job,
        base: &base,
        samples,
        aliases: &[],
    };
    case.assert_each_key_is_heard();
}

#[test]
fn keys_of_every_job() {
    // Its name matters only in an array of jobs.
    let array = |map: &str| format!(r#"{{"F": {{"Type": "Folder", "Jobs": [{map}]}}}}"#);
    let more = [("RunOnAllAgentsInGroup", "true")];
    let samples: Vec<Sample<'_>> = OF_JOB.into_iter().chain(more).chain(INHERITED).collect();
    let command = r#""run %%x""#;
    KeyCase {
        system: System::ControlM,
        path: "f.json",
        tables: &[keys::JOB, keys::INHERITED],
        around: &array,
        base: &[("Type", r#""Job:Command""#), ("Name", r#""J""#), ("Command", command)],
        samples: &samples,
        aliases: &[],
    }
    .assert_each_key_is_heard();
}

#[test]
fn keys_of_what_a_job_runs() {
    let text = |name| (name, r#""x""#);
    assert_keys_of(
        "Job:Command",
        keys::COMMAND,
        &[("Command", r#""run""#)],
        &[
            text("Command"),
            text("PreCommand"),
            text("PostCommand"),
            text("FileName"),
            text("FilePath"),
        ],
    );
    assert_keys_of(
        "Job:Script",
        keys::SCRIPT,
        &[("FileName", r#""run.sh""#)],
        &[
            text("FileName"),
            text("FilePath"),
            ("Arguments", r#"["a"]"#),
            text("PreCommand"),
            text("PostCommand"),
        ],
    );
    assert_keys_of(
        "Job:EmbeddedScript",
        keys::EMBEDDED_SCRIPT,
        &[("Script", r#""run""#)],
        &[
            text("Script"),
            text("PreCommand"),
            text("PostCommand"),
            text("FileName"),
            text("FilePath"),
            ("Arguments", r#"["a"]"#),
        ],
    );
    let profile = ("ConnectionProfile", r#""P""#);
    let other = ("ConnectionProfile", r#""Q""#);
    assert_keys_of(
        "Job:Database:EmbeddedQuery",
        keys::QUERY,
        &[profile, ("Query", r#""SELECT 1""#)],
        &[other, ("Query", r#""SELECT 2""#)],
    );
    assert_keys_of(
        "Job:Database:StoredProcedure",
        keys::PROCEDURE,
        &[profile, ("StoredProcedure", r#""p""#)],
        &[
            other,
            text("StoredProcedure"),
            text("Schema"),
            ("Parameters", r#"[{"Name": "a", "Value": "1"}]"#),
            text("Package"),
            text("ReturnValue"),
        ],
    );
}

#[test]
fn keys_of_a_folder() {
    let folder = |map: &str| format!(r#"{{"F": {map}}}"#);
    let job = r#"{"Type": "Job:Command", "Command": "run %%x"}"#;
    let text = |name| (name, r#""x""#);
    let samples: Vec<Sample<'_>> = [
        ("Type", r#""Calendar:Regular""#),
        ("Jobs", r#"[{"Type": "Job:Dummy", "Name": "d"}]"#),
        text("Description"),
        ("OrderMethod", r#""Manual""#),
        text("Comment"),
        text("ControlmServer"),
        text("Server"),
        text("CreatedBy"),
        text("ActiveRetentionPolicy"),
        text("DaysKeepActive"),
        text("DaysKeepActiveIfNotOk"),
        ("BusinessFields", r#"[{"a": "b"}]"#),
        text("Library"),
        text("SiteStandard"),
        ("Confirm", "true"),
        ("Critical", "true"),
        ("Rerun", r#"{"Every": "5"}"#),
        ("RerunLimit", r#"{"Times": "5"}"#),
        text("AdjustEvents"),
        ("EnforceValidation", "true"),
        text("FolderOrderMethod"),
    ]
    .into_iter()
    .chain(INHERITED)
    .collect();
    KeyCase {
        system: System::ControlM,
        path: "f.json",
        tables: &[keys::FOLDER, keys::INHERITED],
        around: &folder,
        base: &[("Type", r#""Folder""#), ("J", job)],
        samples: &samples,
        aliases: &[],
    }
    .assert_each_key_is_heard();
}

#[test]
fn keys_of_when() {
    let when =
        |map: &str| in_job(&format!(r#"{{"Type": "Job:Command", "Command": "a", "When": {map}}}"#));
    KeyCase {
        system: System::ControlM,
        path: "f.json",
        tables: &[keys::WHEN],
        around: &when,
        base: &[("WeekDays", r#"["MON"]"#), ("MonthDays", r#"["5"]"#)],
        samples: &[
            ("Schedule", r#""Never""#),
            ("WeekDays", r#"["TUE"]"#),
            ("MonthDays", r#"["1"]"#),
            ("Months", r#"["JAN"]"#),
            ("DaysRelation", r#""AND""#),
            ("SpecificDates", r#"["0101"]"#),
            ("FromTime", r#""0200""#),
            ("ToTime", r#""0600""#),
            ("StartDate", r#""20270101""#),
            ("EndDate", r#""20270101""#),
            ("WeekDaysCalendar", r#""CN""#),
            ("MonthDaysCalendar", r#""CN""#),
            ("ConfirmationCalendars", r#"{"Calendar": "CN"}"#),
            ("RuleBasedCalendars", r#"{"Included": ["CN"]}"#),
        ],
        aliases: &[],
    }
    .assert_each_key_is_heard();
}
