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
        tables: &[keys::JOB, keys::ANY, keys::INHERITED],
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
        tables: &[keys::FOLDER, keys::ANY, keys::INHERITED],
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

/// A job with more attributes and children than it had.
fn xml(attributes: &str, children: &str) -> String {
    format!(
        r#"<DEFTABLE><FOLDER FOLDER_NAME="F" FOLDER_ORDER_METHOD="SYSTEM"><JOB {attributes}>{children}</JOB></FOLDER></DEFTABLE>"#
    )
}

/// Each attribute of a table changes what is told, beside those of `base`.
fn assert_attributes(
    known: &[KnownKey],
    base: &[Sample<'_>],
    samples: &[Sample<'_>],
    around: &dyn Fn(&str) -> String,
) {
    use std::collections::{BTreeMap, BTreeSet};
    let names: BTreeSet<&str> = known.iter().map(|known| known.name).collect();
    let tried: BTreeSet<&str> = samples.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, tried, "each known attribute has a sample, and no other");
    let hears = |more: Option<Sample<'_>>| {
        let mut all: BTreeMap<&str, &str> = base.iter().copied().collect();
        all.extend(more);
        let pairs: Vec<String> = all.iter().map(|(k, v)| format!("{k}=\"{v}\"")).collect();
        super::heard(
            System::ControlM,
            &[crate::import::tests::given("f.xml", &around(&pairs.join(" ")))],
        )
    };
    let before = hears(None);
    assert!(!before.starts_with("refused"), "{before}");
    for sample in samples {
        assert_ne!(hears(Some(*sample)), before, "{sample:?} is ignored");
    }
    assert!(hears(Some(("ZZ_UNKNOWN", "1"))).contains("ZZ_UNKNOWN"));
}

/// A value of an attribute of a job that changes the result by itself.
const JOB_SAMPLES: &[Sample<'_>] = &[
    ("JOBNAME", "B"),
    ("CMDLINE", "go"),
    ("TASKTYPE", "Dummy"),
    ("APPL_TYPE", "SAP"),
    ("USE_INSTREAM_JCL", "Y"),
    ("CONFIRM", "1"),
    ("CRITICAL", "1"),
    ("DAYS", "5"),
    ("WEEKDAYS", "2"),
    ("DAYSCAL", "C"),
    ("WEEKSCAL", "C"),
    ("CONFCAL", "C"),
    ("DATE", "0101"),
    ("TIMEFROM", "0200"),
    ("TIMETO", "0600"),
    ("ACTIVE_FROM", "20270101"),
    ("ACTIVE_TILL", "20270101"),
    ("CYCLIC", "1"),
    ("MAXRERUN", "3"),
    ("TIMEZONE", "Europe/Berlin"),
    ("RETRO", "1"),
    ("MULTIAGENT", "Y"),
];
/// Attributes that count only beside others.
const BESIDE_OTHERS: &[&str] = &[
    "MEMNAME",
    "MEMLIB",
    "INSTREAM_JCL",
    "DAYS_AND_OR",
    "INTERVAL",
    "IND_CYCLIC",
    "CYCLIC_TIMES_SEQUENCE",
    "CYCLIC_INTERVAL_SEQUENCE",
    "SUB_APPLICATION",
    "GROUP",
    "OWNER",
];

#[test]
fn attributes_of_a_job_in_xml() {
    let base = [("JOBNAME", "A"), ("TASKTYPE", "Command"), ("CMDLINE", "run"), ("WEEKDAYS", "1")];
    let mut samples = JOB_SAMPLES.to_vec();
    let rest = keys::XML_JOB.iter().copied().flatten().map(|known| known.name);
    let rest: Vec<&str> = rest
        .filter(|name| {
            !samples.iter().any(|(known, _)| known == name) && !BESIDE_OTHERS.contains(name)
        })
        .collect();
    samples.extend(rest.into_iter().map(|name| (name, if name.len() == 3 { "1" } else { "x" })));
    let plain: Vec<KnownKey> = keys::XML_JOB
        .iter()
        .copied()
        .flatten()
        .copied()
        .filter(|known| !BESIDE_OTHERS.contains(&known.name))
        .collect();
    assert_attributes(&plain, &base, &samples, &|attributes| xml(attributes, ""));
    // What counts beside other attributes.
    let known = |names: &[&str]| -> Vec<KnownKey> {
        keys::XML_JOB
            .iter()
            .copied()
            .flatten()
            .copied()
            .filter(|known| names.contains(&known.name))
            .collect()
    };
    for (base, sample) in [
        (vec![("TASKTYPE", "Job"), ("MEMNAME", "a")], ("MEMNAME", "b")),
        (vec![("TASKTYPE", "Job"), ("MEMNAME", "a")], ("MEMLIB", "/opt")),
        (vec![("USE_INSTREAM_JCL", "Y"), ("INSTREAM_JCL", "a")], ("INSTREAM_JCL", "b")),
        (vec![("DAYS", "1"), ("WEEKDAYS", "2")], ("DAYS_AND_OR", "AND")),
        (vec![("CYCLIC", "1"), ("INTERVAL", "00010M"), ("DAYS", "ALL")], ("INTERVAL", "00010H")),
        (vec![("CYCLIC", "1"), ("INTERVAL", "00010M"), ("DAYS", "ALL")], ("IND_CYCLIC", "E")),
        (
            vec![("CYCLIC", "1"), ("INTERVAL", "00010M"), ("DAYS", "ALL")],
            ("CYCLIC_TIMES_SEQUENCE", "0900"),
        ),
        (
            vec![("CYCLIC", "1"), ("INTERVAL", "00010M"), ("DAYS", "ALL")],
            ("CYCLIC_INTERVAL_SEQUENCE", "5M"),
        ),
        (vec![("CMDLINE", "a"), ("TASKTYPE", "Command")], ("SUB_APPLICATION", "x")),
        (vec![("CMDLINE", "a"), ("TASKTYPE", "Command")], ("GROUP", "x")),
        (vec![("CMDLINE", "a"), ("TASKTYPE", "Command")], ("OWNER", "x")),
    ] {
        assert_attributes(&known(&[sample.0]), &base, &[sample], &|all| xml(all, ""));
    }
}

#[test]
fn attributes_of_a_folder_and_elements_in_xml() {
    let folder = |attributes: &str| {
        format!(
            r#"<DEFTABLE><FOLDER {attributes}><JOB JOBNAME="A" TASKTYPE="Command" CMDLINE="run %%x" WEEKDAYS="1"/></FOLDER></DEFTABLE>"#
        )
    };
    // Days of a folder are those of its sub-folders' jobs, and of its own where it has some.
    let of_days = [
        "DAYS",
        "WEEKDAYS",
        "DAYS_AND_OR",
        "DAYSCAL",
        "WEEKSCAL",
        "CONFCAL",
        "DATE",
        "JOBNAME",
        "TABLE_NAME",
        "TABLE_USERDAILY",
    ];
    let known: Vec<KnownKey> = keys::XML_FOLDER
        .iter()
        .copied()
        .flatten()
        .copied()
        .filter(|known| !of_days.contains(&known.name) && known.name.len() != 3)
        .collect();
    let samples: Vec<Sample<'_>> = known
        .iter()
        .map(|known| (known.name, if known.name == "TIMEZONE" { "Europe/Berlin" } else { "x" }))
        .collect();
    assert_attributes(&known, &[("FOLDER_NAME", "F")], &samples, &folder);
    let base = xml(r#"JOBNAME="A" TASKTYPE="Command" CMDLINE="run %%x" WEEKDAYS="1""#, "");
    let hears =
        |text: &str| super::heard(System::ControlM, &[crate::import::tests::given("f.xml", text)]);
    let before = hears(&base);
    for element in [
        r#"<INCOND NAME="C" ODATE="ODAT"/>"#,
        r#"<OUTCOND NAME="C" ODATE="ODAT" SIGN="-"/>"#,
        r#"<QUANTITATIVE NAME="Q" QUANT="1"/>"#,
        r#"<CONTROL NAME="Q" TYPE="S"/>"#,
        r#"<VARIABLE NAME="%%x" VALUE="1"/>"#,
        r#"<AUTOEDIT2 NAME="%%x" VALUE="1"/>"#,
        r#"<AUTOEDIT EXP="%%x=1"/>"#,
        r#"<SHOUT WHEN="LATESUB"/>"#,
        r#"<ON STMT="*" CODE="NOTOK"><DOACTION ACTION="OK"/></ON>"#,
        r#"<ON STMT="*" CODE="NOTOK"><DOFORCEJOB NAME="x"/></ON>"#,
        r#"<ON STMT="line" CODE="OK"><DOMAIL DEST="a@bank.example"/></ON>"#,
        r#"<RULE_BASED_CALENDARS NAME="R"/>"#,
        r#"<STEP_RANGE NAME="R"/>"#,
    ] {
        let text = base.replace("></JOB>", &format!(">{element}</JOB>"));
        assert_ne!(text, base);
        assert_ne!(hears(&text), before, "{element} is ignored");
    }
}
