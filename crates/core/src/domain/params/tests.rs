use super::*;
use crate::domain::id::JobType;
use crate::domain::job::{ParamNeed, Secrecy};

fn code(text: &str) -> JobCode {
    JobCode::parse(text).expect(text)
}

/// A job with the parameter `p`, and what lies in each layer around it.
struct World {
    job: JobDef,
    batch: BatchValues,
    parents: Vec<JobCode>,
    group: Vec<ParamDecl>,
    global: Vec<ParamDecl>,
    start: Start,
}

fn world(ty: ParamType, value: Option<&str>) -> World {
    let group = GroupCode::parse("month_end").expect("group");
    let mut job =
        JobDef::with_defaults(code("GL"), group.clone(), JobType::parse("PROC").expect("type"));
    let value = value.map(str::to_owned);
    job.params = vec![Param { name: "p".into(), ty, value, ..Param::default() }];
    let batch = BatchValues {
        batch_no: BatchNo::parse("202407").expect("no"),
        group,
        business_date: "2024-07-31".parse().ok(),
        params: BTreeMap::from([
            ("rate".to_owned(), "7.10".to_owned()),
            ("trick".to_owned(), "${batch_no}".to_owned()),
            ("pw".to_owned(), "@secret:LEDGER".to_owned()),
        ]),
    };
    let mut region = ParamDecl::plain("region", "EU-${batch_no}");
    region.secrecy = Secrecy::Open;
    let token =
        ParamDecl { secrecy: Secrecy::Secret, ..ParamDecl::plain("token", "${secret.API}") };
    World {
        job,
        batch,
        parents: vec![code("FX.LOAD"), code("B")],
        group: vec![region],
        global: vec![token],
        start: Start {
            idem_key: IdemKey::for_run(
                "3f2a",
                KeyForm::WithoutGroup(&BatchNo::parse("202407").expect("no")),
                &code("GL"),
                2,
            ),
            attempt: 3,
        },
    }
}

fn output(job: &JobCode, name: &str) -> Option<OutputValue> {
    match (job.as_str(), name) {
        ("FX.LOAD", "rows") => Some(OutputValue::Text("12".to_owned())),
        ("FX.LOAD", "empty") => Some(OutputValue::Null),
        ("FX.LOAD", "huge") => Some(OutputValue::Unusable("column huge (TEXT) is too long".into())),
        ("FX.LOAD" | "B", "both") => Some(OutputValue::Text("1".to_owned())),
        _ => None,
    }
}

fn secret(name: &str) -> Option<SecretString> {
    match name {
        "LEDGER" => Some("hunter22".into()),
        "API" => Some("tok-1234".into()),
        _ => None,
    }
}

impl World {
    fn layers(&self) -> Layers<'_> {
        let Self { batch, parents, group, global, .. } = self;
        Layers { start: Some(&self.start), batch, parents, group, global, days: WorkingDays::NONE }
    }

    fn each(&self) -> Result<Resolved, String> {
        let outside = ParamSources { output: &output, secret: Some(&secret) };
        let mut all = resolve_each(&self.job, self.layers(), outside);
        all.remove(0).map_err(|e| e.to_string())
    }
}

fn resolved(ty: ParamType, text: &str) -> Result<Option<String>, String> {
    world(ty, Some(text)).each().map(|r| r.param.expose_text().map(str::to_owned))
}

#[test]
fn the_closed_set_of_names() {
    for (ty, text, value) in [
        (ParamType::Text, "plain $ {} }", "plain $ {} }"),
        (ParamType::Text, "${batch_no}/${group}/${job_code}", "202407/month_end/GL"),
        (ParamType::Date, "${business_date}", "2024-07-31"),
        (ParamType::Date, "${first_day(-1)}", "2024-06-01"),
        (ParamType::Date, "${add_months(business_date, -1)}", "2024-06-30"),
        (ParamType::Int, "${format(last_day, %Y%m%d)}", "20240731"),
        (ParamType::Text, "${batch(-1)} ${batch(quarter(0))}", "202406 2024Q3"),
        (ParamType::Decimal, "${params.rate}", "7.10"),
        (ParamType::Text, "${params.region}", "EU-202407"),
        (ParamType::Int, "${jobs.FX.LOAD.rows}", "12"),
        (ParamType::Text, "user:${secret.LEDGER}", "user:hunter22"),
        (ParamType::Text, "${idem_key}", "3f2a/202407/GL/2"),
        (ParamType::Int, "${attempt}", "3"),
        // What comes out of a name is not looked at again.
        (ParamType::Text, "${params.trick}", "${batch_no}"),
    ] {
        assert_eq!(resolved(ty, text), Ok(Some(value.to_owned())), "{text}");
    }
}

#[test]
fn faults_say_what_to_do() {
    for (ty, text, said) in [
        (ParamType::Text, "${batch_no", "without '}'"),
        (ParamType::Text, "${env.HOME}", "${env.HOME} is not known; use ${batch_no}, ${batch(-1)}"),
        (ParamType::Text, "${first_day(x)}", "${first_day(x)}: \"x\" must be a whole number"),
        (ParamType::Text, "${params.fx}", "--param fx=VALUE"),
        (ParamType::Text, "${jobs.FX.LOAD.cols}", "ended without an output named cols"),
        (ParamType::Text, "${batch(100000)}", "next(100000) lies outside the years 1 to 9999"),
        (
            ParamType::Text,
            "${secret.NONE}",
            "${secret.NONE} has no value in this batch; define it under secrets:, or store it: procession secret set NONE",
        ),
        (ParamType::Int, "12.5", "is not a whole number"),
        (ParamType::Decimal, "1e5", "is not a decimal number"),
        (ParamType::Decimal, ".", "is not a decimal number"),
        (ParamType::Date, "31.07.2024", "YYYY-MM-DD"),
        (ParamType::Bool, "yes", "true or false"),
        // The message of a secret of the wrong type does not show it.
        (ParamType::Int, "${secret.LEDGER}", "parameter p: \"***\" is not a whole number"),
    ] {
        let error = resolved(ty, text).expect_err(text);
        assert!(error.contains(said), "{text}: {error}");
    }
    let mut free = world(ParamType::Date, Some("${last_day}"));
    free.batch.batch_no = BatchNo::parse("adhoc").expect("no");
    let error = free.each().expect_err("free text");
    assert!(
        error.contains("${last_day} has no value in this batch; batch number adhoc is free text"),
        "{error}"
    );
}

/// Puts a value for `p` into one layer; its text is the layer's word.
fn put(world: &mut World, layer: Layer) {
    let text = layer.as_str();
    match layer {
        Layer::Batch => drop(world.batch.params.insert("p".into(), text.into())),
        Layer::Job => world.job.params[0].value = Some(text.into()),
        Layer::Upstream => {}
        Layer::Group => world.group.push(ParamDecl::plain("p", text)),
        Layer::Global => world.global.push(ParamDecl::plain("p", text)),
    }
}

#[test]
fn of_two_layers_the_stronger_wins() {
    let words: Vec<&str> = Layer::ALL.iter().map(|l| l.as_str()).collect();
    assert_eq!(words.join(" > "), PRECEDENCE);
    for (i, strong) in Layer::ALL.into_iter().enumerate() {
        for weak in Layer::ALL.into_iter().skip(i) {
            let mut world = world(ParamType::Text, None);
            put(&mut world, strong);
            put(&mut world, weak);
            let there = strong == Layer::Upstream || weak == Layer::Upstream;
            let output = |job: &JobCode, name: &str| {
                let is = there && job.as_str() == "B" && name == "p";
                is.then(|| OutputValue::Text(Layer::Upstream.as_str().to_owned()))
            };
            let outside = ParamSources { output: &output, secret: Some(&secret) };
            let got =
                resolve_each(&world.job, world.layers(), outside).remove(0).expect("resolves");
            assert_eq!(got.layer, Some(strong), "{strong} and {weak}");
            assert_eq!(got.param.expose_text(), Some(strong.as_str()));
        }
    }
}

#[test]
fn without_any_layer_it_is_null_or_refused() {
    let mut world = world(ParamType::Int, None);
    let got = world.each().expect("NULL");
    assert_eq!((got.layer, got.param.value), (None, None));
    world.job.params[0].need = ParamNeed::Required;
    let error = world.each().expect_err("required");
    assert_eq!(
        error,
        "parameter p is required and no layer has a value for it (batch > job > upstream outputs > \
         group > global); give it to the batch: --param p=VALUE"
    );
    // NULL from above is a value of that layer, and no answer to `required`.
    world.job.params[0].name = "empty".into();
    assert!(world.each().expect_err("NULL").contains("parameter empty is required"));
    world.job.params[0].need = ParamNeed::Optional;
    assert_eq!(world.each().expect("NULL").layer, Some(Layer::Upstream));
    // The same by name; but it is no part of a text.
    world.job.params[0].value = Some("${jobs.FX.LOAD.empty}".into());
    let got = world.each().expect("NULL");
    assert_eq!((got.layer, got.param.value), (Some(Layer::Job), None));
    world.job.params[0].value = Some("x${jobs.FX.LOAD.empty}".into());
    assert!(world.each().expect_err("NULL").contains("it is NULL, which is no part of a text"));
    // What cannot be handed on is an error that names the job, by name and by layer.
    for value in [Some("${jobs.FX.LOAD.huge}".to_owned()), None] {
        world.job.params[0] = Param { name: "huge".into(), value, ..Param::default() };
        let said =
            "parameter huge (type text): ${jobs.FX.LOAD.huge} cannot be handed on: column huge";
        assert!(world.each().expect_err("unusable").contains(said));
    }
    // What only comes back needs nothing.
    world.job.params[0] = Param {
        name: "both".into(),
        mode: ParamMode::Out,
        need: ParamNeed::Required,
        ..Param::default()
    };
    assert_eq!(world.each().expect("out").param.value, None);
}

#[test]
fn two_parents_with_the_same_output_are_named() {
    let mut world = world(ParamType::Int, None);
    world.job.params[0].name = "both".into();
    let error = world.each().expect_err("ambiguous");
    assert_eq!(
        error,
        "parameter both: FX.LOAD and B have an output of that name; say which: value: \
         ${jobs.FX.LOAD.both}"
    );
    world.job.params[0].value = Some("${jobs.B.both}".into());
    assert_eq!(world.each().expect("said").param.expose_text(), Some("1"));
}

#[test]
fn secrets_are_hidden_wherever_they_pass() {
    for (name, value) in [
        ("p", Some("${secret.LEDGER}")),
        ("p", Some("jdbc:${secret.LEDGER}@x")),
        ("p", Some("${params.token}")),
        ("token", None),
        ("pw", None),
    ] {
        let mut world = world(ParamType::Text, value);
        world.job.params[0].name = name.into();
        let got = world.each().expect("resolves");
        assert!(got.param.value.as_ref().is_some_and(MaskedValue::is_secret), "{name} {value:?}");
        let shown = format!("{got:?} {}", serde_json::to_string(&got.param).expect("json"));
        assert!(!shown.contains("hunter22") && !shown.contains("tok-1234"), "{shown}");
        let needed = secrets_needed(&world.job, world.layers(), &output).expect("names");
        assert_eq!(needed.len(), 1, "{name}");
        // Without the secrets everything is worked out all the same, masked.
        world.job.params[0].ty = ParamType::Int;
        let outside = ParamSources { output: &output, secret: None };
        let masked = resolve_each(&world.job, world.layers(), outside).remove(0).expect("masked");
        assert_eq!(masked.param.value.as_ref().map(MaskedValue::shown), Some("***"));
    }
    // Declared secret at the job: a plain value from above is hidden too.
    let mut world = world(ParamType::Text, None);
    world.job.params[0] =
        Param { name: "rows".into(), secrecy: Secrecy::Secret, ..Param::default() };
    assert!(world.each().expect("rows").param.value.is_some_and(|v| v.is_secret()));
    let mut open = self::world(ParamType::Text, Some("${params.rate}"));
    assert!(secrets_needed(&open.job, open.layers(), &output).expect("none").is_empty());
    open.job.params[0].value = Some("${nope}".into());
    assert!(secrets_needed(&open.job, open.layers(), &output).is_err());
}

#[test]
fn outputs_that_may_be_asked_for_are_known_before() {
    let mut world = world(ParamType::Int, Some("${jobs.A.x} ${jobs.B.y}"));
    world.job.params.push(Param { name: "rows".into(), ..Param::default() });
    world.job.params.push(Param { name: "o".into(), mode: ParamMode::Out, ..Param::default() });
    let asked = outputs_asked(&world.job, &[code("B"), code("C")]);
    let words: Vec<String> = asked.iter().map(|(job, name)| format!("{job}.{name}")).collect();
    assert_eq!(words, ["A.x", "B.y", "B.rows", "C.rows"]);
}

#[test]
fn declared_values_are_checked_without_a_batch() {
    let declared = |ty, value: &str| {
        check_declared(&ParamDecl { ty, ..ParamDecl::plain("d", value) }).map_err(|e| e.to_string())
    };
    assert_eq!(declared(ParamType::Date, "${last_day}"), Ok(()));
    assert_eq!(declared(ParamType::Text, "${secret.X}-${batch_no}-${group}"), Ok(()));
    assert_eq!(check_declared(&ParamDecl { value: None, ..ParamDecl::plain("d", "") }), Ok(()));
    for (ty, value, said) in [
        (ParamType::Int, "x", "parameter d: \"x\" is not a whole number"),
        (
            ParamType::Text,
            "${params.x}",
            "${params.x} cannot stand in a parameter of a group or of all groups",
        ),
        (ParamType::Text, "${jobs.A.x}", "${jobs.A.x} cannot stand"),
        (ParamType::Text, "${job_code}", "${job_code} cannot stand"),
        (ParamType::Text, "${nope}", "is not known; use"),
    ] {
        let error = declared(ty, value).expect_err(value);
        assert!(error.contains(said), "{error}");
    }
}
