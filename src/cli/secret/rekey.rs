//! `secret rekey`: re-seals everything under the current key, and reports whether previous keys can
//! be removed.

use crate::app::{App, whoami};
use crate::cli::{BadInput, Global, VerbResult, batch, out};
use crate::engine::operate::operator_actions::operator_here;
use crate::engine::secrets::encryption::KeyRing;
use crate::engine::secrets::rekey::{self, KeySurvey, KeyUse, Resealed};
use crate::store::sealed_text::DefinitionCopy;
use anyhow::Result;
use serde_json::{Value, json};

/// The name of a kind of sealed text, and its name in `--json`.
const COPIES: [(DefinitionCopy, &str, &str); 4] = [
    (DefinitionCopy::Current, "secrets: of the definition", "definition"),
    (DefinitionCopy::Version, "versions of definitions", "versions"),
    (DefinitionCopy::OpenBatch, "batches that run", "open_batches"),
    (DefinitionCopy::EndedBatch, "batches that ended", "ended_batches"),
];

pub(super) async fn rekey(
    global: &Global,
    app: &App,
    check: bool,
    reason: Option<String>,
) -> Result<VerbResult> {
    let keys = KeyRing::from_environment().map_err(|e| BadInput(e.to_string()))?;
    let done = match check {
        true => None,
        false => {
            let by = operator_here(&whoami());
            let now = batch::server_now(app).await?;
            Some(rekey::reseal(&app.db, &keys, &by, reason, now).await?)
        }
    };
    let survey = rekey::survey(&app.db, &keys).await?;
    if global.json {
        out::print_json(&document(&keys, done.as_ref(), &survey))?;
    } else {
        done.iter().for_each(show_resealed);
        show_survey(&keys, &survey);
    }
    let not_opened = done.map(|done| done.not_opened).unwrap_or_default();
    if !not_opened.is_empty() {
        return Err(BadInput(format!(
            "no key that is given opens: {}; give their key as a previous one, or set them anew",
            not_opened.join(", ")
        ))
        .into());
    }
    Ok(if check && survey.needs_previous_key() { VerbResult::Unwell } else { VerbResult::Well })
}

fn show_resealed(done: &Resealed) {
    let secrets = usize::try_from(done.secrets).unwrap_or(usize::MAX);
    let tokens = usize::try_from(done.executor_tokens).unwrap_or(usize::MAX);
    let factors = usize::try_from(done.second_factors).unwrap_or(usize::MAX);
    out::eprint_line(&format!(
        "sealed again under the current key: {}, {} of groups of executors and {} of users; under it before: {}",
        out::count(secrets, "secret"),
        out::count(tokens, "token"),
        out::count(factors, "second factor"),
        done.current
    ));
}

fn show_survey(keys: &KeyRing, survey: &KeySurvey) {
    let row = |called: &str, each: &KeyUse| {
        vec![
            called.to_owned(),
            each.current.to_string(),
            each.previous.to_string(),
            each.unknown.to_string(),
        ]
    };
    let mut rows = vec![
        row("stored secrets", &survey.stored_secrets),
        row("tokens of groups of executors", &survey.executor_tokens),
        row("second factors of users", &survey.second_factors),
    ];
    let of = |copy| survey.definitions.get(&copy).copied().unwrap_or_default();
    rows.extend(COPIES.iter().map(|(copy, called, _)| row(called, &of(*copy))));
    out::print_line(&out::table(
        &["SEALED TEXTS", "CURRENT KEY", "PREVIOUS KEY", "NO KEY GIVEN HERE"],
        rows,
    ));
    for each in &survey.replacements {
        let (name, sealed) = (&each.name, &each.sealed);
        out::eprint_line(&format!(
            "the definition has secret {name} under a previous key; write this into its file and apply it:"
        ));
        out::print_line(&format!("{name}: {{ sealed: \"{sealed}\" }}"));
    }
    if survey.unknown() > 0 {
        out::eprint_line(
            "what opens with no key given here cannot be used: give its key, or set it anew",
        );
    }
    out::eprint_line(&verdict(keys, survey));
}

/// Whether a previous key can be removed.
fn verdict(keys: &KeyRing, survey: &KeySurvey) -> String {
    if survey.needs_previous_key() {
        return "keep the previous key: what the table counts under it opens with nothing else. Stored texts are \
                sealed again by this command, definitions when they are applied anew; batches that ended and \
                versions need it only to be rerun or rolled back to"
            .to_owned();
    }
    match keys.previous_keys() {
        0 => "there is no previous key".to_owned(),
        n => format!(
            "nothing stored here needs {}; take it away from all nodes",
            if n == 1 { "the previous key" } else { "the previous keys" }
        ),
    }
}

fn document(keys: &KeyRing, done: Option<&Resealed>, survey: &KeySurvey) -> Value {
    let counts = |each: &KeyUse| json!({"current_key": each.current, "previous_key": each.previous, "no_key": each.unknown});
    let mut texts = serde_json::Map::new();
    texts.insert("stored_secrets".to_owned(), counts(&survey.stored_secrets));
    texts.insert("executor_tokens".to_owned(), counts(&survey.executor_tokens));
    texts.insert("second_factors".to_owned(), counts(&survey.second_factors));
    for (copy, _, key) in COPIES {
        let of = survey.definitions.get(&copy).copied().unwrap_or_default();
        texts.insert(key.to_owned(), counts(&of));
    }
    let replacement = |r: &rekey::ReplacementText| json!({"name": r.name, "sealed": r.sealed});
    json!({
        "previous_keys": keys.previous_keys(),
        "resealed": done.map(|done| json!({
            "secrets": done.secrets, "executor_tokens": done.executor_tokens,
            "second_factors": done.second_factors,
            "under_current_key_before": done.current, "not_opened": done.not_opened,
        })),
        "sealed_texts": texts,
        "replacements": survey.replacements.iter().map(replacement).collect::<Vec<_>>(),
        "previous_key_needed": survey.needs_previous_key(),
    })
}
