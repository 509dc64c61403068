//! Fits a job's parameters to a routine's signature, or says what does not fit.

use crate::db::routine::{Mode, Routine, RoutineParam};
use crate::domain::job::ParamMode;
use crate::domain::params::BoundParam;

/// A routine's name as a job gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) schema: Option<String>,
    pub(crate) name: String,
    quoted: bool,
}

impl Name {
    /// In lower case, unless a part of it is quoted.
    pub(crate) fn folded(&self) -> Self {
        if self.quoted {
            return self.clone();
        }
        let schema = self.schema.as_ref().map(|s| s.to_lowercase());
        Self { schema, name: self.name.to_lowercase(), quoted: false }
    }
}

/// `name` or `schema.name`, each part plain or in double quotes or backticks.
pub(crate) fn parse_name(text: &str) -> Result<Name, String> {
    let bad = || format!("'{text}' is not a procedure's name: use name or schema.name");
    let (mut parts, mut quoted, mut rest) = (Vec::new(), false, text.trim());
    loop {
        let (part, after) = match rest.chars().next() {
            Some(quote @ ('"' | '`')) => {
                quoted = true;
                let inside = &rest[1..];
                let end = inside.find(quote).ok_or_else(bad)?;
                (&inside[..end], &inside[end + 1..])
            }
            _ => {
                let end = rest.find('.').unwrap_or(rest.len());
                let part = &rest[..end];
                if !part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$') {
                    return Err(bad());
                }
                (part, &rest[end..])
            }
        };
        if part.is_empty() {
            return Err(bad());
        }
        parts.push(part.to_owned());
        match after.strip_prefix('.') {
            Some(more) => rest = more,
            None if after.is_empty() => break,
            None => return Err(bad()),
        }
    }
    let name = parts.pop().ok_or_else(bad)?;
    let schema = parts.pop();
    if parts.is_empty() { Ok(Name { schema, name, quoted }) } else { Err(bad()) }
}

/// A parameter of the routine with the job's parameter for it; none: its default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'a> {
    pub(crate) routine: &'a RoutineParam,
    pub(crate) param: Option<&'a BoundParam>,
}

impl Slot<'_> {
    pub(crate) fn mode(&self) -> Mode {
        self.routine.mode
    }

    /// The name under which an OUT value is kept: the job's, if it has one.
    pub(crate) fn name(&self) -> &str {
        self.param.map_or(self.routine.name.as_str(), |p| p.name.as_str())
    }
}

/// The one of several routines of the same name that the parameters fit.
pub(crate) fn choose(
    found: Vec<Routine>,
    params: &[BoundParam],
    may_be_function: bool,
) -> Result<Routine, String> {
    let signatures = list(&found);
    let mut procedures = found;
    if !may_be_function {
        procedures.retain(|r| !r.is_function);
        if procedures.is_empty() {
            return Err(format!("{signatures}; call a function by a SQL job: SELECT name(...)"));
        }
    }
    if procedures.len() == 1 {
        return procedures.pop().ok_or(signatures);
    }
    let mut fitting: Vec<Routine> =
        procedures.into_iter().filter(|r| arrange(r, params).is_ok()).collect();
    match fitting.len() {
        1 => fitting.pop().ok_or(signatures),
        0 => Err(format!("the job's parameters fit none of: {signatures}")),
        _ => Err(format!("the job's parameters fit more than one: {}", list(&fitting))),
    }
}

fn list(routines: &[Routine]) -> String {
    routines.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Gives each parameter of the routine the job's parameter of that name, whatever the order; by
/// place when the routine's parameters have no names.
pub(crate) fn arrange<'a>(
    routine: &'a Routine,
    params: &'a [BoundParam],
) -> Result<Vec<Slot<'a>>, String> {
    let wanted: Vec<&RoutineParam> = routine
        .params
        .iter()
        .filter(|p| p.mode != Mode::Column && !(routine.is_function && p.mode == Mode::Out))
        .collect();
    // What a function gives back are columns of its row, not places in its list.
    let given: Vec<&BoundParam> =
        params.iter().filter(|p| !(routine.is_function && p.mode == ParamMode::Out)).collect();
    let is = |have: &BoundParam, want: &RoutineParam| have.name.eq_ignore_ascii_case(&want.name);
    let has_names = wanted.iter().all(|p| !p.name.is_empty());
    if let Some(unknown) = given.iter().find(|g| has_names && !wanted.iter().any(|w| is(g, w))) {
        return Err(format!("there is no parameter {} in {routine}", unknown.name));
    }
    let required = wanted.iter().filter(|w| !w.has_default).count();
    if given.len() > wanted.len() || given.len() < required {
        let (have, want) = (given.len(), wanted.len());
        return Err(format!("the job gives {have} parameters, but {want} are in {routine}"));
    }
    let mut slots = Vec::new();
    for (at, routine_param) in wanted.iter().enumerate() {
        let param = match has_names {
            true => given.iter().find(|g| is(g, routine_param)),
            false => given.get(at),
        };
        if param.is_none() && !routine_param.has_default {
            return Err(format!("parameter {} is missing for {routine}", routine_param.name));
        }
        slots.push(Slot { routine: routine_param, param: param.copied() });
    }
    for slot in &slots {
        let Some(param) = slot.param else { continue };
        let fits = match (param.mode, slot.routine.mode) {
            (ParamMode::Out, Mode::In) | (ParamMode::In, Mode::Out) => false,
            (ParamMode::InOut, Mode::In | Mode::Out) => false,
            (_, _) => true,
        };
        if !fits {
            return Err(format!("parameter {} has another mode in {routine}", param.name));
        }
    }
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::ParamType;

    fn param(name: &str, mode: ParamMode) -> BoundParam {
        BoundParam { name: name.into(), mode, ty: ParamType::Text, value: None }
    }

    fn routine(params: &[(&str, Mode, bool)]) -> Routine {
        Routine {
            schema: "s".into(),
            name: "p".into(),
            is_function: false,
            params: params
                .iter()
                .map(|(name, mode, has_default)| RoutineParam {
                    name: (*name).into(),
                    mode: *mode,
                    ty: "int".into(),
                    has_default: *has_default,
                })
                .collect(),
        }
    }

    #[test]
    fn names_have_at_most_two_parts() {
        let name = |text: &str| parse_name(text).map(|n| (n.schema, n.name));
        assert_eq!(name("sp"), Ok((None, "sp".into())));
        assert_eq!(name("fin.sp_过账"), Ok((Some("fin".into()), "sp_过账".into())));
        assert_eq!(name("\"My Schema\".\"a.b\""), Ok((Some("My Schema".into()), "a.b".into())));
        for bad in ["", ".", "a.", "a.b.c", "a b", "sp(); DROP TABLE x", "`a", "\"a\"b", "sp--"] {
            assert!(name(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_name("A.B").map(|n| n.folded().name), Ok("b".into()));
    }

    #[test]
    fn parameters_go_by_name_and_misfits_show_the_signature() {
        let r = routine(&[
            ("p_no", Mode::In, false),
            ("p_rows", Mode::Out, false),
            ("x", Mode::In, true),
        ]);
        let given = [param("P_ROWS", ParamMode::Out), param("p_no", ParamMode::In)];
        let slots = arrange(&r, &given).expect("fits");
        let names: Vec<Option<&str>> =
            slots.iter().map(|s| s.param.map(|p| p.name.as_str())).collect();
        assert_eq!(names, [Some("p_no"), Some("P_ROWS"), None]);
        for (given, said) in [
            (vec![param("nope", ParamMode::In)], "there is no parameter nope"),
            (vec![param("p_no", ParamMode::In)], "gives 1 parameters, but 3"),
            (vec![param("p_no", ParamMode::In), param("x", ParamMode::In)], "p_rows is missing"),
            (vec![param("p_no", ParamMode::Out), param("p_rows", ParamMode::Out)], "another mode"),
        ] {
            let error = arrange(&r, &given).expect_err(said);
            assert!(error.contains(said), "{error}");
            assert!(
                error.contains("procedure s.p(IN p_no int, OUT p_rows int, IN x int DEFAULT)"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_overload_that_fits_is_chosen() {
        let two = vec![routine(&[("a", Mode::In, false)]), routine(&[("b", Mode::In, false)])];
        let chosen = choose(two.clone(), &[param("b", ParamMode::In)], true).expect("one fits");
        assert_eq!(chosen, two[1]);
        assert!(choose(two, &[param("c", ParamMode::In)], true).is_err());
    }
}
