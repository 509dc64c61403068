//! Matches a job's parameters with a routine's signature, or explains why they do not match.

use crate::db::routine::{Routine, RoutineParam, RoutineParamMode};
use crate::db::target::TargetDatabase;
use crate::domain::job::{ParamMode, ParamType};
use crate::domain::params::BoundParam;
use crate::domain::source::routine_name::{RoutineName, is_plain_part};

/// A routine's name as a job gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) schema: Option<String>,
    /// Between the schema and the name, in a name of three parts.
    pub(crate) package: Option<String>,
    pub(crate) name: String,
    /// The types of its parameters, if the job names them to select an overload.
    types: Option<Vec<String>>,
    quoted: bool,
}

impl Name {
    /// In lower case, unless a part of it is quoted.
    pub(crate) fn folded(&self) -> Self {
        if self.quoted {
            return self.clone();
        }
        let schema = self.schema.as_ref().map(|s| s.to_lowercase());
        Self { schema, name: self.name.to_lowercase(), ..self.clone() }
    }

    /// Keeps the overloads with the types that the job names.
    pub(crate) fn retain_types(&self, found: &mut Vec<Routine>) {
        let Some(types) = &self.types else { return };
        found.retain(|routine| {
            let wanted = types.iter().map(|ty| full_type_name(ty));
            let has = |with_outs: bool| -> Vec<String> {
                let params = routine.params.iter().filter(|param| match param.mode {
                    RoutineParamMode::In | RoutineParamMode::InOut => true,
                    RoutineParamMode::Out => with_outs,
                    RoutineParamMode::Column => false,
                });
                params.map(|param| full_type_name(&param.ty)).collect()
            };
            let wanted: Vec<String> = wanted.collect();
            wanted == has(false) || wanted == has(true)
        });
    }
}

/// A type's name as in PostgreSQL's catalogue, without length and precision.
fn full_type_name(ty: &str) -> String {
    let lower = ty.to_ascii_lowercase();
    let (head, rest) = lower.split_once('(').unwrap_or((&lower, ""));
    // `timestamp(3) with time zone`, `numeric(10,2)[]`
    let behind = rest.split_once(')').map_or("", |(_, behind)| behind);
    let whole = format!("{head}{behind}");
    let whole = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    let (scalar, array) = whole.strip_suffix("[]").map_or((whole.as_str(), ""), |s| (s, "[]"));
    let full = match scalar {
        "int" | "int4" => "integer",
        "int2" => "smallint",
        "int8" => "bigint",
        "decimal" => "numeric",
        "float4" => "real",
        "float8" | "float" => "double precision",
        "bool" => "boolean",
        "varchar" => "character varying",
        "char" | "bpchar" => "character",
        "\"bit\"" => "bit",
        "varbit" => "bit varying",
        "timestamp" => "timestamp without time zone",
        "timestamptz" => "timestamp with time zone",
        "time" => "time without time zone",
        "timetz" => "time with time zone",
        other => other,
    };
    format!("{full}{array}")
}

/// Whether a value of the job's type is usual for a parameter of the server's type.
fn is_usual_for(job: ParamType, server: &str) -> bool {
    let full = full_type_name(server);
    match job {
        ParamType::Int => matches!(full.as_str(), "smallint" | "integer" | "bigint"),
        ParamType::Decimal => matches!(full.as_str(), "numeric" | "real" | "double precision"),
        ParamType::Bool => full == "boolean",
        ParamType::Bytes => full == "bytea",
        ParamType::Date => full == "date",
        ParamType::Datetime => full.starts_with("timestamp"),
        ParamType::Text => matches!(full.as_str(), "text" | "character varying" | "character"),
    }
}

/// A part of a name as a job has to write it, with the quotes of the server.
pub(crate) fn written(part: &str, database: &dyn TargetDatabase) -> String {
    let is_folded = !database.capabilities().folds_names || part.to_lowercase() == part;
    if is_plain_part(part) && is_folded { part.to_owned() } else { database.quote_name(part) }
}

/// Parses `name`, `schema.name` or `schema.package.name`, each part plain or in double quotes or
/// backticks, followed by optional parameter types to select an overload: `post(integer, text)`.
pub(crate) fn parse_name(text: &str) -> Result<Name, String> {
    let bad = || format!("'{text}' is not a procedure's name: use name or schema.name");
    let RoutineName { mut parts, is_quoted: quoted, types } =
        RoutineName::parse(text).ok_or_else(bad)?;
    let types = types.map(|list| parse_types(list).ok_or_else(bad)).transpose()?;
    let name = parts.pop().ok_or_else(bad)?;
    let package = if parts.len() == 2 { parts.pop() } else { None };
    let schema = parts.pop();
    Ok(Name { schema, package, name, types, quoted })
}

/// `integer, numeric(10,2), text[]`
fn parse_types(list: &str) -> Option<Vec<String>> {
    if list.trim().is_empty() {
        return Some(Vec::new());
    }
    let (mut types, mut current, mut depth) = (Vec::new(), String::new(), 0_u32);
    for c in list.chars() {
        match c {
            ',' if depth == 0 => {
                types.push(std::mem::take(&mut current));
                continue;
            }
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ if c.is_alphanumeric() || " _.,[]\"".contains(c) => {}
            _ => return None,
        }
        current.push(c);
    }
    types.push(current);
    let is_whole = depth == 0 && types.iter().all(|ty| !ty.trim().is_empty());
    is_whole.then(|| types.into_iter().map(|ty| ty.trim().to_owned()).collect())
}

/// A parameter of the routine with the job's parameter for it; `None`: its default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParamSlot<'a> {
    pub(crate) routine: &'a RoutineParam,
    pub(crate) param: Option<&'a BoundParam>,
}

impl ParamSlot<'_> {
    pub(crate) fn param_mode(&self) -> RoutineParamMode {
        self.routine.mode
    }

    /// The name of an OUT value: the job's, if it has one.
    pub(crate) fn name(&self) -> &str {
        self.param.map_or(self.routine.name.as_str(), |p| p.name.as_str())
    }
}

/// The overload that the parameters fit: by their names, and where that leaves more than one, by
/// their types.
pub(crate) fn choose(mut found: Vec<Routine>, params: &[BoundParam]) -> Result<Routine, String> {
    let signatures = list_signatures(&found);
    if found.len() == 1 {
        return found.pop().ok_or(signatures);
    }
    let mut fitting = found;
    fitting.retain(|routine| arrange(routine, params).is_ok());
    if fitting.is_empty() {
        return Err(format!("the job's parameters fit none of: {signatures}"));
    }
    if fitting.len() > 1 {
        let usual = fitting.iter().filter(|routine| has_usual_types(routine, params));
        if let [only] = &usual.collect::<Vec<_>>()[..] {
            return Ok((*only).clone());
        }
    }
    match (fitting.pop(), fitting.is_empty()) {
        (Some(only), true) => Ok(only),
        (last, _) => {
            fitting.extend(last);
            Err(format!(
                "the job's parameters fit more than one: {}; name the one that is meant with its types, such \
                 as proc_name: \"{}\"",
                list_signatures(&fitting),
                fitting.first().map_or(String::new(), with_types)
            ))
        }
    }
}

/// Whether each input value has a usual type for its parameter.
fn has_usual_types(routine: &Routine, params: &[BoundParam]) -> bool {
    let slots = arrange(routine, params).unwrap_or_default();
    slots
        .iter()
        .filter(|slot| slot.param_mode() != RoutineParamMode::Out)
        .all(|slot| slot.param.is_none_or(|param| is_usual_for(param.ty, &slot.routine.ty)))
}

/// `schema.name(integer, text)`
fn with_types(routine: &Routine) -> String {
    let inputs = routine
        .params
        .iter()
        .filter(|p| matches!(p.mode, RoutineParamMode::In | RoutineParamMode::InOut));
    let types: Vec<&str> = inputs.map(|param| param.ty.as_str()).collect();
    format!("{}.{}({})", routine.schema, routine.name, types.join(", "))
}

/// The signatures of several routines.
pub(crate) fn list_signatures(routines: &[Routine]) -> String {
    routines.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Assigns to each parameter of the routine the job's parameter of that name, in any order; by
/// position when the routine's parameters have no names.
pub(crate) fn arrange<'a>(
    routine: &'a Routine,
    params: &'a [BoundParam],
) -> Result<Vec<ParamSlot<'a>>, String> {
    let wanted: Vec<&RoutineParam> = routine
        .params
        .iter()
        .filter(|p| {
            p.mode != RoutineParamMode::Column
                && !(routine.is_function && p.mode == RoutineParamMode::Out)
        })
        .collect();
    // Return values of a function are columns of its row, not positions in its list.
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
    if wanted.iter().any(|p| p.is_variadic && p.ty == "\"any\"") {
        return Err(format!(
            "VARIADIC \"any\" takes values of types that a job cannot name; call it by a SQL job: {routine}"
        ));
    }
    for (at, routine_param) in wanted.iter().enumerate() {
        let param = match has_names {
            true => given.iter().find(|g| is(g, routine_param)),
            false => given.get(at),
        };
        if param.is_none() && !routine_param.has_default {
            return Err(format!("parameter {} is missing for {routine}", routine_param.name));
        }
        slots.push(ParamSlot { routine: routine_param, param: param.copied() });
    }
    for slot in &slots {
        let Some(param) = slot.param else { continue };
        let fits = match (param.mode, slot.routine.mode) {
            (ParamMode::Out, RoutineParamMode::In) | (ParamMode::In, RoutineParamMode::Out) => {
                false
            }
            (ParamMode::InOut, RoutineParamMode::In | RoutineParamMode::Out) => false,
            (_, _) => true,
        };
        if !fits {
            return Err(format!("parameter {} has another mode in {routine}", param.name));
        }
    }
    Ok(slots)
}

/// Number of values in a CALL of MariaDB: only trailing ones can be omitted.
pub(crate) fn refuse_gap(routine: &Routine, slots: &[ParamSlot<'_>]) -> Result<usize, String> {
    let given = slots.iter().take_while(|slot| slot.param.is_some()).count();
    match slots[given..].iter().find(|slot| slot.param.is_some()) {
        None => Ok(given),
        Some(later) => Err(format!(
            "MariaDB can take a default only for the last parameters: give {} a value, because {} behind it \
             has one, in {routine}",
            slots[given].routine.name, later.routine.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::ParamType;

    fn param(name: &str, mode: ParamMode) -> BoundParam {
        BoundParam { name: name.into(), mode, ty: ParamType::Text, value: None, origin: None }
    }

    fn routine(params: &[(&str, RoutineParamMode, bool)]) -> Routine {
        Routine {
            schema: "s".into(),
            package: None,
            name: "p".into(),
            is_function: false,
            params: params
                .iter()
                .map(|(name, mode, has_default)| RoutineParam {
                    name: (*name).into(),
                    mode: *mode,
                    ty: "int".into(),
                    has_default: *has_default,
                    is_variadic: false,
                })
                .collect(),
        }
    }

    #[test]
    fn names_have_at_most_three_parts_and_types() {
        let name = |text: &str| {
            let dots =
                |part: Option<String>| part.map_or(String::new(), |part| format!("<{part}>"));
            let name = parse_name(text).expect(text);
            let types = name.types.map(|types| types.join("|"));
            (dots(name.schema) + &dots(name.package) + &name.name, types)
        };
        assert_eq!(name("sp"), ("sp".into(), None));
        assert_eq!(name("fin.sp_过账"), ("<fin>sp_过账".into(), None));
        assert_eq!(name("fin.pk.p1"), ("<fin><pk>p1".into(), None));
        assert_eq!(name("\"a\"\"b\".`c.``d`"), ("<a\"b>c.`d".into(), None));
        assert_eq!(name("\"My Schema\".\"a.b\"()"), ("<My Schema>a.b".into(), Some(String::new())));
        let types = "numeric(10,2)|text[]|timestamp with time zone";
        let text = "f(numeric(10,2), text[] , timestamp with time zone)";
        assert_eq!(name(text), ("f".into(), Some(types.into())));
        for bad in [
            "",
            ".",
            "a.",
            "a.b.c.d",
            "a b",
            "sp(); DROP TABLE x",
            "`a",
            "\"a\"b",
            "sp--",
            "f(int",
            "f(,)",
            "f(int))",
            "f(int); x()",
            "f(a'b)",
        ] {
            assert!(parse_name(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_name("A.B").map(|n| n.folded().name), Ok("b".into()));
    }

    #[test]
    fn parameters_go_by_name_and_misfits_show_the_signature() {
        let r = routine(&[
            ("p_no", RoutineParamMode::In, false),
            ("p_rows", RoutineParamMode::Out, false),
            ("x", RoutineParamMode::In, true),
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
        let two = vec![
            routine(&[("a", RoutineParamMode::In, false)]),
            routine(&[("b", RoutineParamMode::In, false)]),
        ];
        let chosen = choose(two.clone(), &[param("b", ParamMode::In)]).expect("one fits");
        assert_eq!(chosen, two[1]);
        assert!(choose(two, &[param("c", ParamMode::In)]).is_err());
    }

    #[test]
    fn overloads_with_the_same_names_are_chosen_by_their_types() {
        let of = |ty: &str| {
            let mut one = routine(&[("a", RoutineParamMode::In, false)]);
            one.params[0].ty = ty.into();
            one
        };
        let typed = |ty| BoundParam { ty, ..param("a", ParamMode::In) };
        let all = [
            "integer",
            "numeric(10,2)",
            "text",
            "date",
            "timestamp(3) without time zone",
            "boolean",
        ]
        .map(of);
        for (at, ty) in [
            (0, ParamType::Int),
            (1, ParamType::Decimal),
            (2, ParamType::Text),
            (3, ParamType::Date),
            (4, ParamType::Datetime),
            (5, ParamType::Bool),
        ] {
            assert_eq!(choose(all.to_vec(), &[typed(ty)]), Ok(all[at].clone()), "{ty:?}");
        }
        let two = [of("integer"), of("bigint")].to_vec();
        let said = choose(two.clone(), &[typed(ParamType::Int)]).expect_err("both are usual");
        assert!(said.contains("more than one") && said.contains("\"s.p(integer)\""), "{said}");
        for (name, expected) in [("s.p(int8)", 1), ("p(INT)", 0), ("p(integer)", 0)] {
            let mut found = two.clone();
            parse_name(name).expect(name).retain_types(&mut found);
            assert_eq!(found, [two[expected].clone()], "{name}");
        }
    }
}
