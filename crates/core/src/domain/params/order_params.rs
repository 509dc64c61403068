//! Checks the parameters of a batch request against the declarations: every fault at once, before a
//! row is written.

use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::body::Items;
use crate::domain::job::secret::BY_NAME;
use crate::domain::job::{JobDef, JobDependency, Param, ParamDecl, ParamMode, ParamNeed, Secrecy};
use crate::domain::params::{ParamError, Reference, check_text, references};
use std::collections::{BTreeMap, HashSet};

/// The declarations that apply to a request.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredParams<'a> {
    /// The group.
    pub group_code: &'a GroupCode,
    /// Declared by the group.
    pub group: &'a [ParamDecl],
    /// Declared for all groups.
    pub global: &'a [ParamDecl],
    /// The jobs that will run.
    pub jobs: &'a [JobDef],
    /// Their dependencies.
    pub dependencies: &'a [JobDependency],
}

/// Faults and warnings about the parameters of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Reasons to refuse the request.
    pub faults: Vec<String>,
    /// Warnings that do not refuse it.
    pub warnings: Vec<String>,
}

/// Checks the parameters of a request. No value of a parameter that is declared secret is repeated
/// in a message.
pub fn check(given: &BTreeMap<String, String>, declared: DeclaredParams<'_>) -> Findings {
    let mut found = Findings::default();
    for (name, text) in given {
        declared.value(name, text, &mut found);
    }
    declared.unknown(given, &mut found);
    declared.missing(given, &mut found);
    found
}

impl<'a> DeclaredParams<'a> {
    fn decls(self) -> impl Iterator<Item = &'a ParamDecl> {
        self.group.iter().chain(self.global)
    }

    /// Parameters of jobs that can take a value of the batch.
    fn params(self) -> impl Iterator<Item = (&'a JobCode, &'a Param)> {
        let of = |job: &'a JobDef| job.params.iter().map(move |p| (&job.code, p));
        self.jobs.iter().flat_map(of).filter(|(_, p)| p.mode != ParamMode::Out)
    }

    fn is_secret(self, name: &str) -> bool {
        self.decls().any(|d| d.name == name && d.secrecy == Secrecy::Secret)
            || self.params().any(|(_, p)| p.name == name && p.secrecy == Secrecy::Secret)
    }

    fn value(self, name: &str, text: &str, found: &mut Findings) {
        let by_name = text.starts_with(BY_NAME);
        match (self.is_secret(name), by_name) {
            (true, true) => return,
            (true, false) => {
                found.faults.push(format!(
                    "parameter {name} is secret, so its value is never given in the clear; store it \
                     (procession secret set NAME) and name it: --param {name}={BY_NAME}NAME"
                ));
                return;
            }
            (false, true) => {
                found.faults.push(format!(
                    "parameter {name} names a secret and is not declared secret, so it would be \
                     shown; declare it with secret: true"
                ));
                return;
            }
            (false, false) => {}
        }
        let wrong = |ty| check_text(name, ty, text).err();
        let declared = self.decls().filter(|d| d.name == name).find_map(|d| wrong(d.ty));
        let mut taken = self.params().filter(|(_, p)| p.name == name);
        found.faults.extend(match declared {
            Some(error) => Some(error.to_string()),
            None => {
                taken.find_map(|(job, p)| Some(format!("{}, as job {job} takes it", wrong(p.ty)?)))
            }
        });
    }

    /// Names nobody asks for are allowed, because one order may go to many groups; where a group says
    /// what it takes, they are more often a slip.
    fn unknown(self, given: &BTreeMap<String, String>, found: &mut Findings) {
        let declared: Vec<&str> = self.decls().map(|d| d.name.as_str()).collect();
        if declared.is_empty() {
            return;
        }
        let used = |name: &str| {
            self.params().any(|(_, p)| {
                let refers = references(p).unwrap_or_default();
                p.name == name || refers.contains(&Reference::Param(name.to_owned()))
            })
        };
        let listed = |name: &str| {
            let items = |job: &'a JobDef| job.for_each.as_ref().map(|list| &list.items);
            let lists = self.jobs.iter().filter_map(items);
            lists.into_iter().any(|items| matches!(items, Items::Param(param) if param == name))
        };
        let used = |name: &str| used(name) || listed(name);
        for name in given.keys().filter(|n| !declared.contains(&n.as_str()) && !used(n)) {
            found.warnings.push(format!(
                "parameter {name} is not declared by group {} and no job of it asks for it; declared \
                 are: {}",
                self.group_code,
                declared.join(", ")
            ));
        }
    }

    fn missing(self, given: &BTreeMap<String, String>, found: &mut Findings) {
        let has = |name: &str| {
            given.contains_key(name) || self.decls().any(|d| d.name == name && d.value.is_some())
        };
        let mut said = HashSet::new();
        for decl in self.decls().filter(|d| d.need == ParamNeed::Required && !has(&d.name)) {
            if said.insert(decl.name.as_str()) {
                found.faults.push(ParamError::Missing { param: decl.name.clone() }.to_string());
            }
        }
        let with_parents: HashSet<&JobCode> =
            self.dependencies.iter().map(|dependency| &dependency.job_code).collect();
        for (job, param) in self.params() {
            // A parent may hand it out; only the try itself can tell.
            let may_come = with_parents.contains(job);
            let lacks =
                param.need == ParamNeed::Required && param.value.is_none() && !has(&param.name);
            if lacks && !may_come && !said.contains(param.name.as_str()) {
                let error = ParamError::Missing { param: param.name.clone() };
                found.faults.push(format!("job {job}: {error}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::JobType;
    use crate::domain::job::ParamType;

    fn code(text: &str) -> JobCode {
        JobCode::parse(text).expect(text)
    }

    fn param(name: &str, ty: ParamType, value: Option<&str>) -> Param {
        let value = value.map(str::to_owned);
        Param { name: name.into(), ty, value, ..Param::default() }
    }

    fn findings(given: &[(&str, &str)]) -> Findings {
        let group_code = GroupCode::parse("month_end").expect("group");
        let mut a =
            JobDef::with_defaults(code("A"), group_code.clone(), JobType::parse("SQL").expect("t"));
        let needed =
            |name| Param { need: ParamNeed::Required, ..param(name, ParamType::Text, None) };
        a.params = vec![
            param("rows", ParamType::Int, Some("1")),
            param("note", ParamType::Text, Some("${params.remark}")),
            Param { secrecy: Secrecy::Secret, ..param("pin", ParamType::Text, None) },
            needed("must"),
            Param { mode: ParamMode::Out, ..needed("out") },
        ];
        let mut b = JobDef { code: code("B"), ..a.clone() };
        b.params = vec![needed("from_above"), needed("region")];
        let day = ParamDecl {
            ty: ParamType::Date,
            value: None,
            need: ParamNeed::Required,
            ..ParamDecl::plain("day", "")
        };
        let pw = ParamDecl { secrecy: Secrecy::Secret, value: None, ..ParamDecl::plain("pw", "") };
        let group = vec![day, pw];
        let global = vec![ParamDecl::plain("region", "EU")];
        let dependencies =
            [JobDependency::plain(&GroupCode::parse("g").expect("group"), code("B"), code("A"), 1)];
        let jobs = vec![a, b];
        let given = given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let (group_code, dependencies) = (&group_code, &dependencies[..]);
        check(
            &given,
            DeclaredParams {
                group_code,
                group: &group,
                global: &global,
                jobs: &jobs,
                dependencies,
            },
        )
    }

    const ENOUGH: [(&str, &str); 2] = [("day", "2024-07-31"), ("must", "x")];

    #[test]
    fn an_order_that_fits_is_not_spoken_of() {
        let more = [("rows", "7"), ("remark", "x"), ("pw", "@secret:L"), ("pin", "@secret:P")];
        assert_eq!(findings(&[&ENOUGH[..], &more].concat()), Findings::default());
    }

    #[test]
    fn every_fault_is_said_at_once() {
        let found = findings(&[
            ("day", "31.7."),
            ("rows", "many"),
            ("pw", "hunter22"),
            ("pin", "1234"),
            ("remark", "@secret:L"),
        ]);
        let want = [
            "parameter day: \"31.7.\" is not a date (YYYY-MM-DD)",
            "parameter rows: \"many\" is not a whole number (int), as job A takes it",
            "parameter pw is secret, so its value is never given in the clear; store it",
            "parameter pin is secret, so its value is never given in the clear",
            "parameter remark names a secret and is not declared secret",
            "job A: parameter must is required and no layer has a value for it",
        ];
        for said in want {
            assert!(found.faults.iter().any(|f| f.contains(said)), "{said}: {:?}", found.faults);
        }
        assert_eq!(found.faults.len(), want.len(), "{:?}", found.faults);
        assert!(!format!("{found:?}").contains("hunter22"));
        let none = findings(&[("must", "x")]).faults;
        assert_eq!(none.len(), 1, "{none:?}");
        assert!(none[0].starts_with("parameter day is required and no layer"), "{none:?}");
    }

    #[test]
    fn a_name_nobody_asks_for_is_a_warning() {
        let found = findings(&[&ENOUGH[..], &[("rgion", "US")]].concat());
        assert_eq!(found.faults, Vec::<String>::new());
        assert_eq!(
            found.warnings,
            ["parameter rgion is not declared by group month_end and no job of it asks for it; \
              declared are: day, pw, region"]
        );
    }
}
