//! Reads the recipients of notifications, and when each event is notified.

use crate::definition::fault::Located;
use crate::definition::fields::{Fields, single};
use crate::definition::keys::NOTIFY;
use crate::definition::near::did_you_mean;
use crate::definition::node::{NodeValue, SourceNode};
use crate::domain::notification::event::{NotificationEvent, NotifyRules, NotifyWhen};
use crate::domain::notification::recipient::Recipient;
use std::collections::BTreeMap;

/// Maximum number of addresses of one job or group: for more, use a mailing list.
const MOST_ADDRESSES: usize = 50;

/// Addresses and channels as a list, or as one text separated by `;` or `,`, as in spreadsheets.
pub(crate) fn addresses(fields: &mut Fields<'_>, key: &str) -> Option<Vec<Located<String>>> {
    let texts = fields.texts(key)?;
    let one_each = |text: Located<String>| -> Vec<Located<String>> {
        let parts = text.value.split([';', ',']).map(str::trim).filter(|p| !p.is_empty());
        parts.map(|p| text.with_value(p.to_owned())).collect()
    };
    let found: Vec<Located<String>> = texts.into_iter().flat_map(one_each).collect();
    for address in &found {
        if let Err(error) = Recipient::parse(&address.value) {
            let what = format!("{}: {}", fields.whose, error.what);
            fields.report.fault(&address.at, what, error.cure);
        }
    }
    if let Some(one_too_many) = found.get(MOST_ADDRESSES) {
        let what = format!("{}: {key} has {} addresses", fields.whose, found.len());
        let cure = format!("{MOST_ADDRESSES} is the most; use a mailing list");
        fields.report.fault(&one_too_many.at, what, cure);
    }
    Some(found)
}

/// `notify: { EVENT: now | batch | day | off }`.
pub(crate) fn rules(fields: &mut Fields<'_>) -> Option<Located<NotifyRules>> {
    let node = fields.take_node("notify")?;
    let at = node.at.clone();
    let NodeValue::Map(entries) = node.value else {
        let what = format!("{}: notify is {}, not a map", fields.whose, node.value.kind());
        fields.report.fault(&at, what, "write EVENT: MOMENT below it, such as failed: now");
        return None;
    };
    let mut rules = BTreeMap::new();
    for (word, node) in entries {
        let event = event(fields, &word);
        // An event without a value is treated as absent.
        if matches!(node.value, NodeValue::Null) {
            continue;
        }
        if let (Some(event), Some(when)) = (event, moment(fields, &word.value, node)) {
            rules.insert(event, when);
        }
    }
    Some(Located::new(&at, NotifyRules(rules)))
}

fn event(fields: &mut Fields<'_>, word: &Located<String>) -> Option<NotificationEvent> {
    let found = NotificationEvent::parse(&word.value);
    let (what, cure) = match found {
        Some(event) if event.is_of_batch() => return found,
        Some(_) => (
            format!("{}: notify: {} is not about a job or a batch", fields.whose, word.value),
            "remove it; the settings say who hears of it".to_owned(),
        ),
        None => {
            let hint = did_you_mean(&word.value, NOTIFY.iter().copied());
            let what = format!("{}: notify: there is no event {:?}", fields.whose, word.value);
            (what, format!("{hint}use one of {}", NOTIFY.join(", ")))
        }
    };
    fields.report.fault(&word.at, what, cure);
    None
}

fn moment(fields: &mut Fields<'_>, event: &str, node: SourceNode) -> Option<NotifyWhen> {
    let whose = format!("{}: notify: {event}", fields.whose);
    let text = single(&whose, node, fields.report)?;
    // Our parser never reads a text as a boolean, but a program that generated the file may have converted `off` to
    // one.
    let found = match text.value.trim().to_ascii_lowercase().as_str() {
        "false" => Some(NotifyWhen::Off),
        word => NotifyWhen::parse(word),
    };
    if found.is_none() {
        let words = NotifyWhen::ALL.map(NotifyWhen::as_str).join(", ");
        let what = format!("{whose} is {:?}", text.value);
        fields.report.fault(&text.at, what, format!("use one of {words}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::definition::keys::NOTIFY;
    use crate::definition::{DefinitionFormat, Loaded, diff_definitions, export, load_definition};
    use crate::domain::job::JobKind;
    use crate::domain::notification::event::{NotificationEvent, NotifyRules, NotifyWhen};
    use crate::domain::text::lang::Lang;
    use std::path::Path;

    const NOOP: JobKind = JobKind { name: "NOOP", about: "", ..JobKind::PLAIN };

    fn read(name: &str, text: &str) -> Result<Loaded, Vec<String>> {
        let text = text.to_owned();
        let read = move |_: &Path| Ok(text.clone());
        load_definition(Path::new(name), &read, &[NOOP])
            .map_err(|faults| faults.as_slice().iter().map(ToString::to_string).collect())
    }

    fn sound(name: &str, text: &str) -> Loaded {
        read(name, text).unwrap_or_else(|faults| panic!("{faults:#?}"))
    }

    const WHOLE: &str = "
owners: { gl: { name: GL, email: ['channel:gl', gl@bank.example], lang: zh }, ops: {} }
groups:
  g: { notify_email: ['channel:ops'], notify: { retried: day, failed: now, batch_done: 'off' } }
defaults: { type: NOOP, notify: { failed: batch } }
templates:
  quiet: { notify: { failed: off, retried: OFF } }
jobs:
  A: {}
  B: { template: quiet, notify_email: 'channel:a-1; a@b.example' }
  C: { template: quiet, notify: { timeout: day, unknown: } }
  D: { notify: {} }
schedules:
  S: { group: g, batch_no: adhoc, event: e, notify_email: ['channel:ops'] }
";

    #[test]
    fn every_form_is_read_and_what_we_write_is_read_again() {
        let loaded = sound("d.yaml", WHOLE);
        let defs = &loaded.definition;
        let owners: Vec<_> = defs.shared.owners.iter().map(|o| (o.email.len(), o.lang)).collect();
        assert_eq!(owners, [(2, Some(Lang::Zh)), (0, None)]);
        let rules =
            |list: &[(NotificationEvent, NotifyWhen)]| NotifyRules(list.iter().copied().collect());
        let of_group = [
            (NotificationEvent::Retried, NotifyWhen::Day),
            (NotificationEvent::Failed, NotifyWhen::Now),
            (NotificationEvent::BatchDone, NotifyWhen::Off),
        ];
        assert_eq!(defs.groups[0].notify, rules(&of_group));
        let of_jobs: Vec<_> =
            defs.jobs.iter().map(|j| j.notify.as_deref().cloned().unwrap_or_default()).collect();
        let wanted = [
            rules(&[(NotificationEvent::Failed, NotifyWhen::Batch)]),
            rules(&[
                (NotificationEvent::Failed, NotifyWhen::Off),
                (NotificationEvent::Retried, NotifyWhen::Off),
            ]),
            rules(&[(NotificationEvent::Timeout, NotifyWhen::Day)]),
            rules(&[]),
        ];
        assert_eq!(of_jobs, wanted, "a job's own list is the whole of it");
        assert_eq!(defs.jobs[1].notify_email, ["channel:a-1", "a@b.example"]);
        for (name, format) in
            [("d.yaml", DefinitionFormat::Yaml), ("d.json", DefinitionFormat::Json)]
        {
            let text = export(defs, &[NOOP], format).unwrap_or_else(|e| panic!("{e}"));
            assert!(diff_definitions(&sound(name, &text).definition, defs).is_empty(), "{text}");
        }
        let json = serde_json::to_string(defs).expect("json");
        assert_eq!(sound("d.json", &json).definition, *defs);
    }

    #[test]
    fn off_is_a_word_and_not_a_truth_value() {
        for word in ["off", "Off", "OFF", "'off'", "\"off\"", "false"] {
            let yaml = format!("jobs: {{ A: {{ type: NOOP, notify: {{ failed: {word} }} }} }}");
            let rules = sound("d.yaml", &yaml).definition.jobs[0].notify.clone().expect("rules");
            assert_eq!(rules.0.get(&NotificationEvent::Failed), Some(&NotifyWhen::Off), "{word}");
        }
        for word in ["\"off\"", "false"] {
            let json =
                format!(r#"{{"jobs":{{"A":{{"type":"NOOP","notify":{{"failed":{word}}}}}}}}}"#);
            let rules = sound("d.json", &json).definition.jobs[0].notify.clone().expect("rules");
            assert_eq!(rules.0.get(&NotificationEvent::Failed), Some(&NotifyWhen::Off), "{word}");
        }
    }

    #[test]
    fn a_change_is_named_by_its_event() {
        let of = |rules: &str| {
            let yaml =
                format!("groups: {{ g: {{ notify: {rules} }} }}\njobs: {{ A: {{ type: NOOP }} }}");
            sound("d.yaml", &yaml).definition
        };
        let said = diff_definitions(&of("{ failed: now }"), &of("{ failed: off, retried: day }"));
        let said: Vec<String> = said.iter().map(ToString::to_string).collect();
        let wanted = "~ group g\n    notify.failed: now -> off\n    notify.retried: (none) -> day";
        assert_eq!(said, [wanted]);
    }

    #[test]
    fn faults_name_the_line_and_the_cure() {
        let text = "
owners: { gl: { email: ['channel:a b'], lang: fr } }
groups:
  g: { notify: off }
  h: { notify: { faild: now } }
defaults: { type: NOOP, group: g, notify: { failed: never } }
jobs:
  A: { notify: { failed: [now], misfire: now }, notify_email: [chanel:x] }
  B: { group: h, notify: { failed: on } }
";
        let faults = read("d.yaml", text).expect_err("faults");
        let words = "use one of now, batch, day, off";
        for (line, what) in [
            (2, "owner gl: \"channel:a b\" names no channel; write channel:NAME".to_owned()),
            (2, "owner gl: lang is \"fr\"; use one of en, zh".to_owned()),
            (4, "group g: notify is a single value, not a map; write EVENT: MOMENT".to_owned()),
            (5, "group h: notify: there is no event \"faild\"; did you mean failed?".to_owned()),
            (6, format!("defaults: notify: failed is \"never\"; {words}")),
            (8, "job A: notify: failed is a list, not a single value".to_owned()),
            (8, "job A: notify: misfire is not about a job or a batch".to_owned()),
            (8, "job A: \"chanel:x\" is not an e-mail address; write".to_owned()),
            (9, format!("job B: notify: failed is \"on\"; {words}")),
        ] {
            let start = format!("d.yaml:{line}: {what}");
            assert!(faults.iter().any(|f| f.starts_with(&start)), "{start}\n{faults:#?}");
        }
        assert_eq!(faults.len(), 9, "{faults:#?}");
    }

    #[test]
    fn the_keys_are_the_events_of_jobs_and_batches() {
        let events: Vec<&str> = NotificationEvent::ALL
            .into_iter()
            .filter(|e| e.is_of_batch())
            .map(NotificationEvent::as_str)
            .collect();
        assert_eq!(NOTIFY, &events[..]);
    }
}
