//! Values of parameters: `${…}` in every type, in a job and as a declaration of a group.

use super::text_of;
use procession::domain::calendar::WorkingDays;
use procession::domain::id::{BatchNo, GroupCode, JobCode, JobType};
use procession::domain::job::outcome::OutputValue;
use procession::domain::job::{JobDef, Param, ParamDecl, ParamType};
use procession::domain::params::param_expressions::{BadReference, ParamPiece, pieces};
use procession::domain::params::{
    BatchValues, Layers, ParamSources, Start, calendars_asked, check_declared, check_literal,
    references, resolve_each, secret_names,
};
use secrecy::SecretString;
use std::collections::BTreeMap;

/// No message may hold it.
const SECRET: &str = "hunter22-of-the-ledger";

const TYPES: [ParamType; 7] = [
    ParamType::Text,
    ParamType::Int,
    ParamType::Decimal,
    ParamType::Date,
    ParamType::Datetime,
    ParamType::Bool,
    ParamType::Bytes,
];

/// Values are taken apart and put together again; what is resolved is of its type; no message holds a secret.
pub(super) fn check(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    check_pieces(text);
    for ty in TYPES {
        let param =
            Param { name: "p".into(), ty, value: Some(text.to_owned()), ..Param::default() };
        let known = references(&param);
        let literal = check_literal(&param);
        if let (Err(fault), Err(_)) = (&known, &literal) {
            assert!(fault.to_string().starts_with("parameter p: "), "{fault}");
        }
        check_resolved(param);
    }
    if let Err(fault) = check_declared(&ParamDecl::plain("p", text)) {
        assert!(fault.to_string().starts_with("parameter p: "), "{fault}");
    }
    let _any_calendars = calendars_asked(Some(text));
    let _any_secrets = secret_names(text);
}

fn check_pieces(text: &str) {
    let found = match pieces(text) {
        Ok(found) => found,
        Err(BadReference::Unclosed) => {
            assert!(text.contains("${"), "nothing is open in {text:?}");
            return;
        }
        Err(BadReference::Unknown(_)) => return,
        Err(BadReference::Wrong(_, said)) => {
            assert!(!said.is_empty(), "{text:?}");
            return;
        }
    };
    let written = |piece: &ParamPiece| match piece {
        ParamPiece::Text(text) => text.clone(),
        ParamPiece::Name(name, _) => format!("${{{name}}}"),
    };
    let again: String = found.iter().map(written).collect();
    assert_eq!(pieces(&again).as_ref(), Ok(&found), "{text:?} as {again:?}");
}

fn check_resolved(param: Param) {
    let ty = param.ty;
    let code = |text: &str| JobCode::parse(text).expect("a job code");
    let group = GroupCode::parse("month_end").expect("a group code");
    let mut job =
        JobDef::with_defaults(code("GL"), group.clone(), JobType::parse("PROC").expect("a type"));
    job.params = vec![param];
    let batch = BatchValues {
        batch_no: BatchNo::parse("202407").expect("a batch number"),
        group,
        business_date: "2024-07-31".parse().ok(),
        params: BTreeMap::from([("rate".to_owned(), "7.10".to_owned())]),
    };
    let (parents, start) = ([code("FX.LOAD")], Start::shown(&batch, &code("GL")));
    let global = [ParamDecl::plain("token", "${secret.API}")];
    let layers = Layers {
        start: Some(&start),
        batch: &batch,
        parents: &parents,
        group: &[],
        global: &global,
        days: WorkingDays::NONE,
    };
    let output = |_: &JobCode, name: &str| match name {
        "rows" => Some(OutputValue::Text("12".to_owned())),
        "empty" => Some(OutputValue::Null),
        _ => None,
    };
    let secret = |_: &str| Some(SecretString::from(SECRET));
    for secret in [None, Some(&secret as &dyn Fn(&str) -> Option<SecretString>)] {
        for resolved in resolve_each(&job, layers, ParamSources { output: &output, secret }) {
            match resolved {
                Ok(resolved) if secret.is_some() => {
                    assert_type(ty, resolved.param.expose_text().unwrap_or_default());
                    let shown = format!("{resolved:?}");
                    assert!(!shown.contains(SECRET), "a secret is shown: {shown}");
                }
                Ok(_) => {}
                Err(fault) => {
                    let said = fault.to_string();
                    // A value of another job is refused with the job that was to take it and the type.
                    let is_named = said.starts_with("parameter p: ")
                        || said.starts_with("job GL, parameter p (type ");
                    assert!(is_named, "{said}");
                    assert!(!said.contains(SECRET), "a secret is in a message: {said}");
                }
            }
        }
    }
}

fn assert_type(ty: ParamType, text: &str) {
    let fits = match ty {
        _ if text.is_empty() => true,
        ParamType::Int => text.parse::<i64>().is_ok(),
        ParamType::Bool => text == "true" || text == "false",
        ParamType::Date => text.parse::<chrono::NaiveDate>().is_ok(),
        ParamType::Decimal => text.bytes().all(|b| b.is_ascii_digit() || b"+-.".contains(&b)),
        _ => true,
    };
    assert!(fits, "{text:?} is accepted as {}", ty.as_str());
}
