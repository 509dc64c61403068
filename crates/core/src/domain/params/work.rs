//! Works out one parameter: the first layer that has a value, and the `${…}` in it.

use super::fault::{ParamError, check_type, returned_fault};
use super::taken::text_for;
use super::{BoundParam, Layer, Layers, ParamSources, Resolved, Start, ValueOrigin, pieces};
use crate::domain::id::JobCode;
use crate::domain::job::outcome::OutputValue;
use crate::domain::job::secret::{BY_NAME, MaskedValue};
use crate::domain::job::{JobDef, Param, ParamMode, ParamNeed, ParamType, Secrecy};
use crate::domain::params::param_expressions::{ParamPiece, Reference};
use crate::domain::value::{bytes_text, parse_bytes};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What is known while the parameters of one job are worked out.
pub(super) struct ParamResolution<'a> {
    pub(super) job: &'a JobDef,
    pub(super) layers: Layers<'a>,
    pub(super) outside: ParamSources<'a>,
}

/// Names of secrets that were asked for on the way.
pub(super) type RequestedSecrets<'a> = &'a RefCell<BTreeSet<String>>;

/// Bytes in one form, whichever they were given in. A secret is left as it is, because it is masked so.
fn one_form(ty: ParamType, value: MaskedValue) -> MaskedValue {
    match (ty, value) {
        (ParamType::Bytes, MaskedValue::Open(text)) => {
            MaskedValue::Open(parse_bytes(&text).map_or(text, |bytes| bytes_text(&bytes)))
        }
        (_, value) => value,
    }
}

/// A value, and the output that it is.
#[derive(Default)]
pub(super) struct GivenValue {
    value: Option<MaskedValue>,
    origin: Option<ValueOrigin>,
}

impl From<MaskedValue> for GivenValue {
    fn from(value: MaskedValue) -> Self {
        Self { value: Some(value), origin: None }
    }
}

/// Refuses a value that another job returned and that is of another type than its parameter.
fn refuse_returned(
    param: &Param,
    value: &MaskedValue,
    origin: &ValueOrigin,
) -> Result<(), ParamError> {
    let Some(expected) = returned_fault(param.ty, value.expose()) else { return Ok(()) };
    let reason = format!(
        "{:?} is not {expected}; declare the parameter type: text, or return another value",
        value.shown()
    );
    let (param, ty, origin) = (param.name.clone(), param.ty, origin.clone());
    Err(ParamError::Unusable { param, ty, origin, reason })
}

impl ParamResolution<'_> {
    pub(super) fn resolve(&self, param: &Param) -> Result<Resolved, ParamError> {
        let (layer, GivenValue { value, origin }) =
            self.resolve_value(param, &RefCell::default())?;
        if let (Some(value), Some(origin)) = (&value, &origin) {
            refuse_returned(param, value, origin)?;
        } else if let Some(value) = &value {
            // Without the secrets there is only a mask to look at.
            if self.outside.secret.is_some() || !value.is_secret() {
                check_type(&param.name, param.ty, value)?;
            }
        } else if param.need == ParamNeed::Required && param.mode != ParamMode::Out {
            return Err(ParamError::Missing { param: param.name.clone() });
        }
        let value = value.map(|value| one_form(param.ty, value));
        let Param { name, mode, ty, .. } = param.clone();
        Ok(Resolved { param: BoundParam { name, mode, ty, value, origin }, layer })
    }

    /// The first layer with a value, and the value.
    pub(super) fn resolve_value(
        &self,
        param: &Param,
        asked: RequestedSecrets<'_>,
    ) -> Result<(Option<Layer>, GivenValue), ParamError> {
        let (layer, found) = self.first(param, asked)?;
        let decls = self.layers.group.iter().chain(self.layers.global);
        let mut secrecy = decls.filter(|d| d.name == param.name).map(|d| d.secrecy);
        let hidden = param.secrecy == Secrecy::Secret || secrecy.any(|s| s == Secrecy::Secret);
        let GivenValue { value, origin } = found;
        let value = if hidden { value.map(MaskedValue::hidden) } else { value };
        Ok((layer, GivenValue { value, origin }))
    }

    fn first(
        &self,
        param: &Param,
        asked: RequestedSecrets<'_>,
    ) -> Result<(Option<Layer>, GivenValue), ParamError> {
        let name = param.name.as_str();
        let own =
            || param.value.as_deref().map(|text| self.job_value(param, text, asked)).transpose();
        if param.mode == ParamMode::Out {
            return Ok((param.value.as_ref().map(|_| Layer::Job), own()?.unwrap_or_default()));
        }
        if let Some(text) = self.layers.batch.params.get(name) {
            return Ok((Some(Layer::Batch), self.given(name, text, asked)?.into()));
        }
        if let Some(value) = own()? {
            return Ok((Some(Layer::Job), value));
        }
        if let Some(value) = self.upstream(param)? {
            return Ok((Some(Layer::Upstream), value));
        }
        Ok(match self.declared(name, asked)? {
            Some((layer, value)) => (Some(layer), value.into()),
            None => (None, GivenValue::default()),
        })
    }

    /// A value of the batch: it comes from outside, so nothing in it is looked at but the name of a
    /// secret, which was checked when the batch was opened.
    fn given(
        &self,
        param: &str,
        text: &str,
        asked: RequestedSecrets<'_>,
    ) -> Result<MaskedValue, ParamError> {
        match text.strip_prefix(BY_NAME) {
            Some(secret) => self.secret(param, secret, asked),
            None => Ok(MaskedValue::from(text)),
        }
    }

    /// The job's own value. One that is an output and nothing else is that output, NULL as well.
    fn job_value(
        &self,
        param: &Param,
        text: &str,
        asked: RequestedSecrets<'_>,
    ) -> Result<GivenValue, ParamError> {
        let name = param.name.as_str();
        if let [ParamPiece::Name(_, Reference::Output(code, key))] = &pieces(name, text)?[..]
            && let Some(output) = (self.outside.output)(code, key)
        {
            return self.handed_on(param, code.as_str(), key, output);
        }
        self.expand(name, text, asked).map(GivenValue::from)
    }

    /// An output as the value of a parameter of that name and type; `None` is NULL.
    fn handed_on(
        &self,
        param: &Param,
        code: &str,
        key: &str,
        output: OutputValue,
    ) -> Result<GivenValue, ParamError> {
        let ty = param.ty;
        let origin = ValueOrigin {
            taker: self.job.code.clone(),
            job: code.to_owned(),
            output: key.to_owned(),
        };
        let taken = match output {
            OutputValue::Null => return Ok(GivenValue { value: None, origin: Some(origin) }),
            OutputValue::Text(text) => text_for(ty, None, text),
            OutputValue::Typed(found, text) => text_for(ty, Some(found), text),
            OutputValue::Stored(reference) => {
                let (param, what) = (param.name.clone(), reference.describe());
                return Err(ParamError::NotLoaded { param, origin, what });
            }
            OutputValue::Unusable(reason) => Err(reason),
        };
        match taken {
            Ok(text) => {
                Ok(GivenValue { value: Some(MaskedValue::Open(text)), origin: Some(origin) })
            }
            Err(reason) => {
                Err(ParamError::Unusable { param: param.name.clone(), ty, origin, reason })
            }
        }
    }

    fn upstream(&self, param: &Param) -> Result<Option<GivenValue>, ParamError> {
        let name = param.name.as_str();
        let has = |code: &JobCode| Some((code.to_string(), (self.outside.output)(code, name)?));
        let mut found: Vec<_> = self.layers.parents.iter().filter_map(has).collect();
        if found.len() > 1 {
            let parents = found.into_iter().map(|(code, _)| code).collect();
            return Err(ParamError::SeveralParents { param: name.to_owned(), parents });
        }
        let Some((code, output)) = found.pop() else { return Ok(None) };
        self.handed_on(param, &code, name, output).map(Some)
    }

    fn declared(
        &self,
        name: &str,
        asked: RequestedSecrets<'_>,
    ) -> Result<Option<(Layer, MaskedValue)>, ParamError> {
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

    fn secret(
        &self,
        param: &str,
        name: &str,
        asked: RequestedSecrets<'_>,
    ) -> Result<MaskedValue, ParamError> {
        asked.borrow_mut().insert(name.to_owned());
        let Some(secrets) = self.outside.secret else {
            return Ok(MaskedValue::from("***").hidden());
        };
        secrets(name).map(MaskedValue::Secret).ok_or_else(|| ParamError::NoValue {
            param: param.to_owned(),
            name: format!("secret.{name}"),
            cure: format!("define it under secrets:, or store it: procession secret set {name}"),
        })
    }

    fn expand(
        &self,
        param: &str,
        text: &str,
        asked: RequestedSecrets<'_>,
    ) -> Result<MaskedValue, ParamError> {
        let mut whole = String::new();
        let mut hidden = false;
        for piece in pieces(param, text)? {
            match piece {
                ParamPiece::Text(text) => whole.push_str(&text),
                ParamPiece::Name(name, reference) => {
                    let value = self.look_up(param, name, &reference, asked)?;
                    hidden |= value.is_secret();
                    whole.push_str(value.expose());
                }
            }
        }
        let value = MaskedValue::Open(whole);
        Ok(if hidden { value.hidden() } else { value })
    }

    fn look_up(
        &self,
        param: &str,
        name: String,
        reference: &Reference,
        asked: RequestedSecrets<'_>,
    ) -> Result<MaskedValue, ParamError> {
        let batch = self.layers.batch;
        let (no, date) = (&batch.batch_no, batch.business_date);
        let found: Result<String, String> = match reference {
            Reference::BatchNo => Ok(no.to_string()),
            Reference::Batch(expr) => {
                expr.one_from(no, date).map(|no| no.to_string()).map_err(|e| e.to_string())
            }
            Reference::Group => Ok(batch.group.to_string()),
            Reference::JobCode => Ok(self.job.code.to_string()),
            Reference::Item => {
                let item = self.job.fan_out_item().map(str::to_owned);
                item.ok_or_else(|| "only a job with for_each has one".to_owned())
            }
            Reference::IdemKey => self.start().map(|start| start.idem_key.to_string()),
            Reference::Attempt => self.start().map(|start| start.attempt.to_string()),
            Reference::Date(expr) => {
                expr.evaluate(no, date, self.layers.days).map(|d| d.to_string())
            }
            Reference::Format(expr, format) => {
                expr.evaluate(no, date, self.layers.days).map(|d| format.write(d))
            }
            Reference::Secret(secret) => return self.secret(param, secret, asked),
            Reference::Param(key) => match self.param(key, asked)? {
                Some(value) => return Ok(value),
                None => Err(format!("give it to the group or to the batch (--param {key}=VALUE)")),
            },
            Reference::Output(code, key) => match (self.outside.output)(code, key) {
                // As a part of a text.
                Some(output) => {
                    let text = Param { name: param.to_owned(), ..Param::default() };
                    match self.handed_on(&text, code.as_str(), key, output)?.value {
                        Some(value) => return Ok(value),
                        None => Err("it is NULL, which is no part of a text".to_owned()),
                    }
                }
                None => Err(format!("job {code} ended without an output named {key}")),
            },
        };
        found.map(MaskedValue::Open).map_err(|cure| ParamError::NoValue {
            param: param.to_owned(),
            name,
            cure,
        })
    }

    fn start(&self) -> Result<&Start, String> {
        let said = "it is known only when a job starts; use it in the params of a job";
        self.layers.start.ok_or_else(|| said.to_owned())
    }

    /// `${params.KEY}`: the batch's, else the group's, else that of all groups.
    fn param(
        &self,
        key: &str,
        asked: RequestedSecrets<'_>,
    ) -> Result<Option<MaskedValue>, ParamError> {
        let decls = self.layers.group.iter().chain(self.layers.global);
        let hidden = decls.clone().any(|d| d.name == key && d.secrecy == Secrecy::Secret);
        let value = match self.layers.batch.params.get(key) {
            Some(text) => Some(self.given(key, text, asked)?),
            None => self.declared(key, asked)?.map(|(_, value)| value),
        };
        Ok(if hidden { value.map(MaskedValue::hidden) } else { value })
    }
}
