//! Refines an access by the catalogue: names of columns by position, derived columns, keys of upserts, BEFORE triggers,
//! and conditions on views.

use crate::domain::source::DialectName;
use crate::lineage::access::{Access, AccessMode, Argument, ColumnSet, ConflictKey};
use crate::lineage::catalogue::{
    BodyText, Catalogue, CatalogueRoutine, CatalogueTrigger, Table, TriggerAction, TriggerEvent,
};
use crate::lineage::slice::{Binding, Slice};
use crate::lineage::words::{TokenSlice, tokenize};
use sqlparser::tokenizer::Token;
use std::collections::BTreeSet;

/// The values passed for each parameter of a routine.
pub(super) fn bind_arguments(routine: &CatalogueRoutine, arguments: &[Argument]) -> Binding {
    let mut binding = Binding::new();
    for (at, param) in routine.params.iter().enumerate() {
        let place = format!("${}", at + 1);
        let name = param.name.as_ref().map(|name| name.to_lowercase());
        let by_name = arguments.iter().find(|argument| {
            argument.name.is_some() && argument.name.as_ref().map(|n| n.to_lowercase()) == name
        });
        // A parameter without a name takes the argument at its position.
        let by_place =
            arguments.get(at).filter(|argument| argument.name.is_none() || param.name.is_none());
        let values = by_name.or(by_place).and_then(|argument| argument.values.clone());
        if let Some(name) = name {
            binding.insert(name, values.clone());
        }
        binding.insert(place, values);
    }
    binding
}

/// The columns of the row that a trigger receives.
pub(super) fn row_binding(slice: &Slice) -> Binding {
    let mut binding = Binding::new();
    for (column, conditions) in &slice.columns {
        for row in ["new", "old"] {
            let values = conditions.first().cloned();
            binding.insert(format!("{row}.{}", column.to_lowercase()), values);
        }
    }
    binding
}

/// Refines an access by the definition of its table: names of columns by position, derived columns, keys of upserts,
/// BEFORE triggers.
pub(super) fn settle(mut access: Access, table: &Table, catalogue: &Catalogue) -> Access {
    let mut slice = Slice::default();
    for (column, conditions) in &access.slice.columns {
        let place = column.strip_prefix('#').and_then(|place| place.parse::<usize>().ok());
        let name = match place {
            Some(place) => table.columns.get(place.saturating_sub(1)).cloned(),
            None => Some(column.clone()),
        };
        for values in conditions {
            if let Some(name) = &name {
                slice.require(name, values.clone());
            }
        }
    }
    access.slice = slice;
    if access.mode == AccessMode::Upsert {
        // The changed row has the same key as the new one, and may differ in all other columns.
        let is_key = |column: &str| match &access.conflict_key {
            Some(ConflictKey::Columns(key)) => key.contains(column),
            Some(ConflictKey::AnyKey) | None => {
                !table.unique_keys.is_empty()
                    && table.unique_keys.iter().all(|key| key.contains(column))
            }
        };
        access.slice.columns.retain(|column, _| is_key(column));
    }
    if access.mode == AccessMode::Update {
        for column in &table.derived_columns {
            access.written.add_column(column);
        }
    }
    let events = events_of(&access);
    let before = table.triggers.iter().filter(|trigger| trigger.is_before);
    for trigger in before.filter(|one| one.events.iter().any(|event| events.contains(event))) {
        if access.mode == AccessMode::Update {
            access.written = ColumnSet::All;
        }
        match changed_columns(trigger, catalogue) {
            ColumnSet::All => access.slice = Slice::default(),
            ColumnSet::Only(changed) => {
                access.slice.columns.retain(|column, _| !changed.contains(column));
            }
        }
    }
    access
}

/// The columns that a trigger assigns in its row: `NEW.a := …`, `SET NEW.a = …`.
fn changed_columns(trigger: &CatalogueTrigger, catalogue: &Catalogue) -> ColumnSet {
    let text = match &trigger.action {
        TriggerAction::Body(BodyText::Text(text)) => text,
        TriggerAction::Body(BodyText::Hidden { .. }) => return ColumnSet::All,
        TriggerAction::Calls(function) => {
            let found = catalogue.resolve_routine(function, 0, &catalogue.search_path);
            match found.first().map(|routine| &routine.body) {
                Some(BodyText::Text(text)) => text,
                Some(BodyText::Hidden { .. }) | None => return ColumnSet::All,
            }
        }
    };
    let Ok(tokens) = tokenize(text, catalogue.dialect, 1) else { return ColumnSet::All };
    let words = TokenSlice(&tokens);
    let mut changed = BTreeSet::new();
    let is_assigned =
        |at: usize| words.is_token(at, &Token::Assignment) || words.is_token(at, &Token::Eq);
    for at in 0..tokens.len() {
        if !words.is_word(at, "NEW") {
            continue;
        }
        if words.is_token(at + 1, &Token::Period) && is_assigned(at + 3) {
            changed.extend(words.word_at(at + 2).map(str::to_lowercase));
        } else if words.is_token(at + 1, &Token::Assignment)
            || words.is_word(at.wrapping_sub(1), "INTO")
        {
            return ColumnSet::All;
        }
    }
    ColumnSet::Only(changed)
}

/// The trigger events of an access.
pub(super) fn events_of(access: &Access) -> BTreeSet<TriggerEvent> {
    use TriggerEvent::{Delete, Insert, Truncate, Update};
    match access.mode {
        AccessMode::Read => BTreeSet::new(),
        AccessMode::Insert => BTreeSet::from([Insert]),
        AccessMode::Upsert => BTreeSet::from([Insert, Update, Delete]),
        AccessMode::Update => BTreeSet::from([Update]),
        AccessMode::Delete => BTreeSet::from([Delete]),
        AccessMode::Whole => BTreeSet::from([Truncate]),
    }
}

/// The query of a view with the outer conditions on its columns, so that its tables are narrowed too.
pub(super) fn narrowed_view(
    text: &str,
    access: &Access,
    table: &Table,
    dialect: DialectName,
) -> (String, Binding) {
    let mut binding = Binding::new();
    let mut conditions = Vec::new();
    let quote = |name: &str| match dialect {
        DialectName::Mysql => format!("`{}`", name.replace('`', "``")),
        DialectName::Postgres | DialectName::Sqlite => {
            format!("\"{}\"", name.replace('"', "\"\""))
        }
    };
    for (column, all) in &access.slice.columns {
        if !table.columns.contains(column) {
            continue;
        }
        for values in all {
            let name = format!(":view_param_{}", binding.len());
            conditions.push(format!("v.{} = {name}", quote(column)));
            binding.insert(name, Some(values.clone()));
        }
    }
    if conditions.is_empty() || access.mode.is_write() {
        return (text.to_owned(), Binding::new());
    }
    let columns: Vec<String> = table.columns.iter().map(|column| quote(column)).collect();
    let (columns, conditions) = (columns.join(", "), conditions.join(" AND "));
    (format!("SELECT 1 FROM ({text}\n) v ({columns}) WHERE {conditions}"), binding)
}
