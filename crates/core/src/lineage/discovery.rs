//! Drafts jobs from procedures: either all of a schema, ordered by their data, or those that a serial master calls, of
//! whose order only what the data requires is kept.
//!
//! Nothing is guessed silently: unknown facts become comments, and a step that cannot be analysed stays between its
//! predecessors and its successors.

use crate::domain::text::did_you_mean::nearest;
use crate::lineage::catalogue::{BodyText, Catalogue, CatalogueRoutine, RoutineLanguage};
use crate::lineage::draft_jobs::{DefinitionDraft, DiscoveryError, DraftPlace, Drafter};
use crate::lineage::master_calls::read_master;
use crate::lineage::master_plan::{MasterStep, StepAction};

/// Drafts a job from each procedure of a schema whose name matches a LIKE pattern.
///
/// # Errors
/// If no such procedure exists.
pub fn draft_schema(
    place: DraftPlace<'_>,
    like: Option<&str>,
) -> Result<DefinitionDraft, DiscoveryError> {
    let catalogue = catalogue_of(place)?;
    let mut found = procedures_of(catalogue, place.schema);
    let all: Vec<String> = found.iter().map(|one| one.name.name.clone()).collect();
    found.retain(|one| like.is_none_or(|like| is_like(&one.name.name, like)));
    if found.is_empty() {
        return Err(DiscoveryError::NoProcedure(no_procedure(place, like, &all)));
    }
    let mut draft = Drafter::new(place, catalogue);
    let kept = draft.leave_out_parts(&found);
    for routine in kept {
        draft.add_procedure(routine)?;
    }
    draft.offer_outputs();
    draft.order_by_data();
    draft.note_session_variables(None);
    Ok(draft.finish())
}

/// Drafts a job from each step of a serial master.
///
/// # Errors
/// If the procedure does not exist, or its body cannot be analysed.
pub fn draft_from_master(
    place: DraftPlace<'_>,
    master: &str,
) -> Result<DefinitionDraft, DiscoveryError> {
    let catalogue = catalogue_of(place)?;
    let routine = find_master(place, catalogue, master)?;
    let unread = |why: String| DiscoveryError::UnreadMaster(why);
    let text = match (&routine.language, &routine.body) {
        (RoutineLanguage::Procedural, BodyText::Text(text)) => text,
        (_, BodyText::Hidden { grant }) => {
            return Err(unread(format!(
                "the body of {master} is not visible to this user; {grant}"
            )));
        }
        (RoutineLanguage::Sql, _) => {
            return Err(unread(format!(
                "{master} is written in LANGUAGE sql; a master in PL/pgSQL is read"
            )));
        }
        (RoutineLanguage::Native, _) => {
            return Err(unread(format!("{master} is no procedure with a text")));
        }
        (RoutineLanguage::Other(language), _) => {
            return Err(unread(format!("{master} is written in {language}, which is not read")));
        }
    };
    let plan = read_master(routine, text, catalogue)
        .map_err(|why| unread(format!("the body of {master} cannot be read: {why}")))?;
    let has_call = |step: &MasterStep| matches!(step.action, StepAction::Call { .. });
    if !plan.steps.iter().any(has_call) {
        return Err(unread(format!(
            "{master} calls no procedure, so there is nothing to draft from it; leave out --from-master to draft a \
             job from each procedure of the schema"
        )));
    }
    let mut draft = Drafter::new(place, catalogue);
    draft.add_plan(routine, &plan)?;
    draft.note_session_variables(Some(text));
    Ok(draft.finish())
}

fn catalogue_of(place: DraftPlace<'_>) -> Result<&Catalogue, DiscoveryError> {
    place.target.catalogue.as_ref().map_err(|why| DiscoveryError::SourceAway(why.clone()))
}

/// The procedures of a schema by name.
fn procedures_of<'c>(catalogue: &'c Catalogue, schema: &str) -> Vec<&'c CatalogueRoutine> {
    let is_its = |one: &&CatalogueRoutine| {
        let own = one.name.schema.as_deref().unwrap_or_default();
        !one.is_function
            && (own == schema || catalogue.folds_tables && own.eq_ignore_ascii_case(schema))
    };
    catalogue.routines().filter(is_its).collect()
}

fn no_procedure(place: DraftPlace<'_>, like: Option<&str>, all: &[String]) -> String {
    let DraftPlace { source, schema, .. } = place;
    match like {
        Some(like) if !all.is_empty() => {
            let near = nearest(like, all.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            let shown = all.iter().take(10).map(String::as_str).collect::<Vec<_>>().join(", ");
            format!(
                "{source}: no procedure of {schema} is like '{like}' (% stands for any letters, _ for one){near}; there \
                 are {}: {shown}{}",
                all.len(),
                if all.len() > 10 { " …" } else { "" }
            )
        }
        Some(_) | None => format!(
            "{source}: {schema} has no procedure that this user may see; name another one with --schema, or ask for \
             the right to execute them"
        ),
    }
}

fn find_master<'c>(
    place: DraftPlace<'_>,
    catalogue: &'c Catalogue,
    master: &str,
) -> Result<&'c CatalogueRoutine, DiscoveryError> {
    let (schema, name) = match master.split_once('.') {
        Some((schema, name)) => (schema, name),
        None => (place.schema, master),
    };
    let all = procedures_of(catalogue, schema);
    let exact = |one: &&&CatalogueRoutine| one.name.name == name;
    let folded = |one: &&&CatalogueRoutine| one.name.name.eq_ignore_ascii_case(name);
    let found: Vec<&CatalogueRoutine> = match all.iter().any(|one| exact(&one)) {
        true => all.iter().filter(exact).copied().collect(),
        false => all.iter().filter(folded).copied().collect(),
    };
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let near = nearest(name, all.iter().map(|one| one.name.name.as_str()));
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            let source = place.source;
            Err(DiscoveryError::NoMaster(format!(
                "{source}: {schema} has no procedure {name} that this user may see{near}"
            )))
        }
        _ => Err(DiscoveryError::NoMaster(format!(
            "{}: {schema} has {} procedures {name}; rename the master, so that it is clear which is meant",
            place.source,
            found.len()
        ))),
    }
}

/// Whether a name matches a LIKE pattern, ignoring case.
fn is_like(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) =
        (name.to_lowercase().chars().collect(), pattern.to_lowercase().chars().collect());
    // For each prefix of the name: whether the pattern so far matches it.
    let mut fits = vec![false; name.len() + 1];
    fits[0] = true;
    for letter in pattern {
        let before = fits.clone();
        let mut any = false;
        for at in 0..fits.len() {
            any |= before[at];
            fits[at] = match letter {
                '%' => any,
                '_' => at > 0 && before[at - 1],
                letter => at > 0 && before[at - 1] && name[at - 1] == letter,
            };
        }
    }
    fits[name.len()]
}
