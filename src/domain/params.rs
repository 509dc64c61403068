//! Parameters: which layer a value comes from, and what the `${…}` in it become.
//!
//! There is no template engine, no nesting and no code: the text of a parameter's value is the
//! only place where `${…}` means anything, and what comes out of it reaches SQL as a bound value
//! and a script as an environment variable, never as text of either.

use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::{JobDef, Need, Param, ParamDecl, ParamMode, ParamType, Secrecy};
use crate::domain::reference::{self, BadReference, Piece};
use crate::domain::secret::{BY_NAME, Value};
use chrono::{NaiveDate, NaiveDateTime};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use crate::domain::reference::Reference;

/// Values that the jobs of one batch share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchValues {
    /// `${batch_no}`
    pub batch_no: BatchNo,
    /// `${group}`
    pub group: GroupCode,
    /// `${business_date}`, `YYYY-MM-DD`; none when the batch number does not imply one and none
    /// was given.
    pub business_date: Option<NaiveDate>,
    /// The batch's own parameters; those of the group and of all groups stand in its snapshot.
    pub params: BTreeMap<String, String>,
}

/// A parameter with its value worked out, ready to be bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BoundParam {
    /// Name, as in the definition.
    pub name: String,
    /// Which way it travels.
    pub mode: ParamMode,
    /// Its type.
    pub ty: ParamType,
    /// Its text; `None` is NULL.
    pub value: Option<Value>,
}

impl BoundParam {
    /// Its text, secret or not, for whoever binds it.
    pub fn text(&self) -> Option<&str> {
        self.value.as_ref().map(Value::expose)
    }
}

/// Where a value comes from, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The batch's own parameter: `--param`, the order.
    Batch,
    /// The job's own `value`.
    Job,
    /// An output of that name of a direct parent.
    Upstream,
    /// The group's parameter.
    Group,
    /// The parameter of all groups.
    Global,
}

/// The order of the layers, for people.
pub const PRECEDENCE: &str = "batch > job > upstream outputs > group > global";

impl Layer {
    /// Every layer, strongest first.
    pub const ALL: [Self; 5] = [Self::Batch, Self::Job, Self::Upstream, Self::Group, Self::Global];

    /// The word in `PRECEDENCE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Job => "job",
            Self::Upstream => "upstream outputs",
            Self::Group => "group",
            Self::Global => "global",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The layers around the parameters of one job.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// The batch, with its own parameters.
    pub batch: &'a BatchValues,
    /// Jobs that this one depends on directly.
    pub parents: &'a [JobCode],
    /// What the group declares.
    pub group: &'a [ParamDecl],
    /// What is declared for all groups.
    pub global: &'a [ParamDecl],
}

/// What parameters ask of the world.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// An output of a job: `None` when it has none of that name, `Some(None)` when it is NULL.
    pub output: &'a dyn Fn(&JobCode, &str) -> Option<Option<String>>,
    /// A secret by its name. Without it, secrets are masked and not checked for their type.
    pub secret: Option<&'a dyn Fn(&str) -> Option<SecretString>>,
}

/// A parameter that was worked out, and the layer that gave its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The parameter.
    pub param: BoundParam,
    /// Where its value comes from; none: no layer has one.
    pub layer: Option<Layer>,
}

/// Why a parameter has no usable value; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// `${` without `}`.
    #[error("parameter {param}: '${{' without '}}' in {text:?}")]
    Unclosed {
        /// The parameter.
        param: String,
        /// Its text.
        text: String,
    },
    /// A name outside the closed set.
    #[error("parameter {param}: ${{{name}}} is not known; use {}", reference::FORMS)]
    UnknownName {
        /// The parameter.
        param: String,
        /// The name in its text.
        name: String,
    },
    /// A known function with something wrong in it.
    #[error("parameter {param}: ${{{name}}}: {said}")]
    WrongFunction {
        /// The parameter.
        param: String,
        /// The function in its text.
        name: String,
        /// What is wrong, and what to do.
        said: String,
    },
    /// A known name that has no value in this batch.
    #[error("parameter {param}: ${{{name}}} has no value in this batch; {cure}")]
    NoValue {
        /// The parameter.
        param: String,
        /// The name in its text.
        name: String,
        /// What to do about it.
        cure: String,
    },
    /// A name that a declared value may not use.
    #[error(
        "parameter {param}: ${{{name}}} cannot stand in a parameter of a group or of all groups, which \
         are worked out before any job; put it into the job's own value"
    )]
    NotHere {
        /// The parameter.
        param: String,
        /// The name in its text.
        name: String,
    },
    /// Several parents have an output of that name.
    #[error(
        "parameter {param}: {} have an output of that name; say which: value: ${{jobs.{}.{param}}}",
        .parents.join(" and "), .parents[0]
    )]
    SeveralParents {
        /// The parameter.
        param: String,
        /// The parents, at least two.
        parents: Vec<String>,
    },
    /// Required, and no layer has a value.
    #[error(
        "parameter {param} is required and no layer has a value for it ({PRECEDENCE}); give it to the \
         batch: --param {param}=VALUE"
    )]
    Missing {
        /// The parameter.
        param: String,
    },
    /// The text is not of the declared type.
    #[error("parameter {param}: {text:?} is not {expected}")]
    WrongType {
        /// The parameter.
        param: String,
        /// Its text; masked when it is secret.
        text: String,
        /// The type in words, with its form.
        expected: &'static str,
    },
}

fn pieces(param: &str, text: &str) -> Result<Vec<Piece>, ParamError> {
    let param = param.to_owned();
    reference::pieces(text).map_err(|bad| match bad {
        BadReference::Unclosed => ParamError::Unclosed { param, text: text.to_owned() },
        BadReference::Unknown(name) => ParamError::UnknownName { param, name },
        BadReference::Wrong(name, said) => ParamError::WrongFunction { param, name, said },
    })
}

fn references_in(param: &str, text: &str) -> Result<Vec<(String, Reference)>, ParamError> {
    let named = |piece| match piece {
        Piece::Name(name, reference) => Some((name, reference)),
        Piece::Text(_) => None,
    };
    Ok(pieces(param, text)?.into_iter().filter_map(named).collect())
}

/// The names a parameter's value refers to; what `check` looks at without any batch.
pub fn references(param: &Param) -> Result<Vec<Reference>, ParamError> {
    let found = references_in(&param.name, param.value.as_deref().unwrap_or_default())?;
    Ok(found.into_iter().map(|(_, reference)| reference).collect())
}

/// Checks a value that refers to nothing against the declared type; values with `${…}` can only
/// be checked when they are known.
pub fn check_literal(param: &Param) -> Result<(), ParamError> {
    match &param.value {
        Some(text) if references(param)?.is_empty() => check_text(&param.name, param.ty, text),
        _ => Ok(()),
    }
}

/// Checks the value that a group, or the definition for all groups, declares.
pub fn check_declared(decl: &ParamDecl) -> Result<(), ParamError> {
    let Some(text) = &decl.value else { return Ok(()) };
    let found = references_in(&decl.name, text)?;
    if let Some((name, _)) = found.iter().find(|(_, r)| !may_be_declared(r)) {
        return Err(ParamError::NotHere { param: decl.name.clone(), name: name.clone() });
    }
    if found.is_empty() { check_text(&decl.name, decl.ty, text) } else { Ok(()) }
}

fn may_be_declared(reference: &Reference) -> bool {
    match reference {
        Reference::BatchNo | Reference::Batch(_) | Reference::Group => true,
        Reference::Date(_) | Reference::Format(..) | Reference::Secret(_) => true,
        Reference::JobCode | Reference::Param(_) | Reference::Output(..) => false,
    }
}

/// Whether the text of a value holds a secret, so that the value is one.
pub fn names_a_secret(text: &str) -> bool {
    let found = reference::pieces(text).unwrap_or_default();
    found.iter().any(|piece| matches!(piece, Piece::Name(_, Reference::Secret(_))))
}

/// Works out every parameter of `job`.
pub fn resolve(
    job: &JobDef,
    layers: Layers<'_>,
    outside: Outside<'_>,
) -> Result<Vec<BoundParam>, ParamError> {
    resolve_each(job, layers, outside).into_iter().map(|r| r.map(|r| r.param)).collect()
}

/// Works out every parameter of `job` by itself, with the layer it comes from.
pub fn resolve_each(
    job: &JobDef,
    layers: Layers<'_>,
    outside: Outside<'_>,
) -> Vec<Result<Resolved, ParamError>> {
    let work = Work { job, layers, outside };
    job.params.iter().map(|param| work.resolve(param)).collect()
}

/// The secrets that `job` needs, by name; found by working its parameters out without any.
pub fn secrets_needed(
    job: &JobDef,
    layers: Layers<'_>,
    output: &dyn Fn(&JobCode, &str) -> Option<Option<String>>,
) -> Result<BTreeSet<String>, ParamError> {
    let work = Work { job, layers, outside: Outside { output, secret: None } };
    let mut names = BTreeSet::new();
    for param in &job.params {
        let asked = RefCell::new(BTreeSet::new());
        work.find(param, &asked)?;
        names.append(&mut asked.into_inner());
    }
    Ok(names)
}

/// Outputs of other jobs that the parameters of `job` may ask for.
pub fn outputs_asked(job: &JobDef, parents: &[JobCode]) -> Vec<(JobCode, String)> {
    let mut asked = Vec::new();
    for param in &job.params {
        if takes_upstream(param) {
            asked.extend(parents.iter().map(|parent| (parent.clone(), param.name.clone())));
        }
        for reference in references(param).unwrap_or_default() {
            if let Reference::Output(code, name) = reference {
                asked.push((code, name));
            }
        }
    }
    asked
}

/// Whether a parameter may take its value from an output of a parent.
pub fn takes_upstream(param: &Param) -> bool {
    param.mode != ParamMode::Out && param.value.is_none()
}

/// What is known while the parameters of one job are worked out.
struct Work<'a> {
    job: &'a JobDef,
    layers: Layers<'a>,
    outside: Outside<'a>,
}

type Asked<'a> = &'a RefCell<BTreeSet<String>>;

impl Work<'_> {
    fn resolve(&self, param: &Param) -> Result<Resolved, ParamError> {
        let (layer, value) = self.find(param, &RefCell::default())?;
        if let Some(value) = &value {
            // Without the secrets there is only a mask to look at.
            if self.outside.secret.is_some() || !value.is_secret() {
                check_type(&param.name, param.ty, value)?;
            }
        } else if param.need == Need::Required && param.mode != ParamMode::Out {
            return Err(ParamError::Missing { param: param.name.clone() });
        }
        let Param { name, mode, ty, .. } = param.clone();
        Ok(Resolved { param: BoundParam { name, mode, ty, value }, layer })
    }

    /// The first layer with a value, and the value.
    fn find(
        &self,
        param: &Param,
        asked: Asked<'_>,
    ) -> Result<(Option<Layer>, Option<Value>), ParamError> {
        let (layer, value) = self.first(param, asked)?;
        let decls = self.layers.group.iter().chain(self.layers.global);
        let mut secrecy = decls.filter(|d| d.name == param.name).map(|d| d.secrecy);
        let hidden = param.secrecy == Secrecy::Secret || secrecy.any(|s| s == Secrecy::Secret);
        Ok((layer, if hidden { value.map(Value::hidden) } else { value }))
    }

    fn first(
        &self,
        param: &Param,
        asked: Asked<'_>,
    ) -> Result<(Option<Layer>, Option<Value>), ParamError> {
        let name = param.name.as_str();
        let own = || param.value.as_deref().map(|text| self.expand(name, text, asked)).transpose();
        if param.mode == ParamMode::Out {
            return Ok((param.value.as_ref().map(|_| Layer::Job), own()?));
        }
        if let Some(text) = self.layers.batch.params.get(name) {
            return Ok((Some(Layer::Batch), Some(self.given(name, text, asked)?)));
        }
        if let Some(value) = own()? {
            return Ok((Some(Layer::Job), Some(value)));
        }
        if let Some(value) = self.upstream(name)? {
            return Ok((Some(Layer::Upstream), value.map(Value::Open)));
        }
        Ok(match self.declared(name, asked)? {
            Some((layer, value)) => (Some(layer), Some(value)),
            None => (None, None),
        })
    }

    /// A value of the batch: it comes from outside, so nothing in it is looked at but the name of a
    /// secret, which was checked when the batch was opened.
    fn given(&self, param: &str, text: &str, asked: Asked<'_>) -> Result<Value, ParamError> {
        match text.strip_prefix(BY_NAME) {
            Some(secret) => self.secret(param, secret, asked),
            None => Ok(Value::from(text)),
        }
    }

    fn upstream(&self, name: &str) -> Result<Option<Option<String>>, ParamError> {
        let has = |code: &JobCode| Some((code.to_string(), (self.outside.output)(code, name)?));
        let mut found: Vec<_> = self.layers.parents.iter().filter_map(has).collect();
        if found.len() > 1 {
            let parents = found.into_iter().map(|(code, _)| code).collect();
            return Err(ParamError::SeveralParents { param: name.to_owned(), parents });
        }
        Ok(found.pop().map(|(_, value)| value))
    }

    fn declared(&self, name: &str, asked: Asked<'_>) -> Result<Option<(Layer, Value)>, ParamError> {
        let layers = [(Layer::Group, self.layers.group), (Layer::Global, self.layers.global)];
        for (layer, decls) in layers {
            let Some(decl) = decls.iter().find(|d| d.name == name) else { continue };
            let Some(text) = &decl.value else { continue };
            let value = self.expand(name, text, asked)?;
            let hidden = decl.secrecy == Secrecy::Secret;
            return Ok(Some((layer, if hidden { value.hidden() } else { value })));
        }
        Ok(None)
    }

    fn secret(&self, param: &str, name: &str, asked: Asked<'_>) -> Result<Value, ParamError> {
        asked.borrow_mut().insert(name.to_owned());
        let Some(secrets) = self.outside.secret else { return Ok(Value::from("***").hidden()) };
        secrets(name).map(Value::Secret).ok_or_else(|| ParamError::NoValue {
            param: param.to_owned(),
            name: format!("secret.{name}"),
            cure: format!("define it under secrets:, or store it: procession secret set {name}"),
        })
    }

    fn expand(&self, param: &str, text: &str, asked: Asked<'_>) -> Result<Value, ParamError> {
        let mut whole = String::new();
        let mut hidden = false;
        for piece in pieces(param, text)? {
            match piece {
                Piece::Text(text) => whole.push_str(&text),
                Piece::Name(name, reference) => {
                    let value = self.look_up(param, name, &reference, asked)?;
                    hidden |= value.is_secret();
                    whole.push_str(value.expose());
                }
            }
        }
        let value = Value::Open(whole);
        Ok(if hidden { value.hidden() } else { value })
    }

    fn look_up(
        &self,
        param: &str,
        name: String,
        reference: &Reference,
        asked: Asked<'_>,
    ) -> Result<Value, ParamError> {
        let batch = self.layers.batch;
        let (no, date) = (&batch.batch_no, batch.business_date);
        let found: Result<String, String> = match reference {
            Reference::BatchNo => Ok(no.to_string()),
            Reference::Batch(expr) => {
                expr.one_from(no, date).map(|no| no.to_string()).map_err(|e| e.to_string())
            }
            Reference::Group => Ok(batch.group.to_string()),
            Reference::JobCode => Ok(self.job.code.to_string()),
            Reference::Date(expr) => expr.of(no, date).map(|d| d.to_string()),
            Reference::Format(expr, format) => expr.of(no, date).map(|d| format.write(d)),
            Reference::Secret(secret) => return self.secret(param, secret, asked),
            Reference::Param(key) => match self.param(key, asked)? {
                Some(value) => return Ok(value),
                None => Err(format!("give it to the group or to the batch (--param {key}=VALUE)")),
            },
            Reference::Output(code, key) => (self.outside.output)(code, key)
                .flatten()
                .ok_or_else(|| format!("job {code} ended without an output named {key}")),
        };
        found.map(Value::Open).map_err(|cure| ParamError::NoValue {
            param: param.to_owned(),
            name,
            cure,
        })
    }

    /// `${params.KEY}`: the batch's, else the group's, else that of all groups.
    fn param(&self, key: &str, asked: Asked<'_>) -> Result<Option<Value>, ParamError> {
        let decls = self.layers.group.iter().chain(self.layers.global);
        let hidden = decls.clone().any(|d| d.name == key && d.secrecy == Secrecy::Secret);
        let value = match self.layers.batch.params.get(key) {
            Some(text) => Some(self.given(key, text, asked)?),
            None => self.declared(key, asked)?.map(|(_, value)| value),
        };
        Ok(if hidden { value.map(Value::hidden) } else { value })
    }
}

/// Checks a text from outside against a type.
pub fn check_text(param: &str, ty: ParamType, text: &str) -> Result<(), ParamError> {
    check_type(param, ty, &Value::from(text))
}

fn check_type(param: &str, ty: ParamType, value: &Value) -> Result<(), ParamError> {
    let text = value.expose();
    let (fits, expected) = match ty {
        ParamType::Text => (true, "text"),
        ParamType::Int => (text.parse::<i64>().is_ok(), "a whole number (int)"),
        ParamType::Decimal => (is_decimal(text), "a decimal number such as 1234.50"),
        ParamType::Date => (text.parse::<NaiveDate>().is_ok(), "a date (YYYY-MM-DD)"),
        ParamType::Datetime => (
            NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").is_ok(),
            "a date and time (YYYY-MM-DD HH:MM:SS)",
        ),
        ParamType::Bool => (matches!(text, "true" | "false"), "true or false"),
    };
    if fits {
        return Ok(());
    }
    let text = value.shown().to_owned();
    Err(ParamError::WrongType { param: param.to_owned(), text, expected })
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let numeric = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    numeric(whole) && numeric(fraction)
}

#[cfg(test)]
mod tests;
