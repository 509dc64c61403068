//! Resolves aliases: alternative codes by which dependencies and parameters may name a job. The result names jobs by
//! their codes only.

use crate::definition::fault::FaultReport;
use crate::definition::raw::{RawJob, RawParam};
use crate::domain::id::JobCode;
use crate::domain::job::JobDef;
use crate::domain::job::body::Items;
use std::collections::{HashMap, HashSet};

/// Codes by alias.
#[derive(Debug, Default)]
pub(crate) struct Aliases(HashMap<String, String>);

impl Aliases {
    /// Collects the aliases of a group's jobs; an ambiguous alias is reported.
    pub(crate) fn collect(jobs: &[&RawJob], report: &mut FaultReport) -> Self {
        let codes: HashSet<&str> = jobs.iter().map(|j| j.code.value.as_str()).collect();
        let mut found: HashMap<String, String> = HashMap::new();
        for job in jobs {
            let code = job.code.value.as_str();
            for alias in &job.aliases {
                let word = alias.value.as_str();
                let whose = format!("job {code}: alias {word}");
                let fault = if let Err(error) = JobCode::parse(word) {
                    Some((format!("job {code}: alias: {error}"), ""))
                } else if word == code {
                    Some((format!("{whose} is its own code"), "remove it"))
                } else if codes.contains(word) {
                    Some((format!("{whose} is the code of another job"), "choose another alias"))
                } else if let Some(other) = found.get(word) {
                    let what = format!("{whose} is an alias of job {other} already");
                    Some((what, "an alias names one job; remove one of the two"))
                } else {
                    None
                };
                match fault {
                    Some((what, cure)) => report.fault(&alias.at, what, cure),
                    None => drop(found.insert(word.to_owned(), code.to_owned())),
                }
            }
        }
        Self(found)
    }

    /// The code for a word: the word itself, unless it is an alias.
    pub(crate) fn resolve_word<'a>(&'a self, word: &'a str) -> &'a str {
        self.0.get(word).map_or(word, String::as_str)
    }

    /// Replaces aliases by codes in the references of a job to others.
    pub(crate) fn resolve(&self, job: &mut RawJob) {
        if self.0.is_empty() {
            return;
        }
        if let Some(condition) = &mut job.condition {
            condition.value = self.in_condition(&condition.value);
        }
        let params = job.params.iter_mut().flat_map(|params| params.value.iter_mut());
        params.for_each(|param| self.resolve_param(param));
    }

    fn resolve_param(&self, param: &mut RawParam) {
        if let Some(value) = &mut param.value {
            value.value = self.in_text(&value.value);
        }
    }

    /// Replaces the alias in `${jobs.ALIAS.NAME}` by the code; all other text is unchanged.
    fn in_text(&self, text: &str) -> String {
        let mut said = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, next)) = after.split_once('}') else { break };
            said.push_str(before);
            let output = name.trim().strip_prefix("jobs.").and_then(|o| o.rsplit_once('.'));
            match output.and_then(|(job, output)| Some((self.0.get(job)?, output))) {
                Some((code, output)) => said.push_str(&format!("${{jobs.{code}.{output}}}")),
                None => said.push_str(&format!("${{{name}}}")),
            }
            rest = next;
        }
        said + rest
    }

    /// Replaces the alias in `ALIAS.NAME` by the code; all other text and quoted text is unchanged.
    fn in_condition(&self, text: &str) -> String {
        let mut said = String::new();
        let mut word = String::new();
        let mut quote = None;
        for c in text.chars() {
            if quote.is_none() && (c.is_alphanumeric() || c == '_' || c == '.') {
                word.push(c);
                continue;
            }
            said.push_str(&self.in_name(&std::mem::take(&mut word)));
            match quote {
                None if c == '\'' || c == '"' => quote = Some(c),
                Some(open) if open == c => quote = None,
                None | Some(_) => {}
            }
            said.push(c);
        }
        said + &self.in_name(&word)
    }

    /// A code may itself contain dots, so each dot may be the one before the output's name.
    fn in_name(&self, name: &str) -> String {
        let meant =
            name.match_indices('.').find_map(|(at, _)| Some((self.0.get(&name[..at])?, at)));
        meant.map_or_else(|| name.to_owned(), |(code, at)| format!("{code}{}", &name[at..]))
    }

    /// The same in a list of items that is already built.
    pub(crate) fn settle(&self, job: &mut JobDef) {
        let Some(list) = &mut job.for_each else { return };
        match &mut list.items {
            Items::Output(code, _) => {
                let meant = self.0.get(code.as_str()).and_then(|c| JobCode::parse(c).ok());
                meant.into_iter().for_each(|meant| *code = meant);
            }
            Items::List(_) | Items::Param(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_in_a_condition_is_rewritten() {
        let pairs = [("OLD", "GL_NEW"), ("A.B", "C")];
        let aliases = Aliases(pairs.map(|(a, c)| (a.to_owned(), c.to_owned())).into());
        for (text, wanted) in [
            ("OLD.rows > 0 and A.B.x = 'OLD.x'", "GL_NEW.rows > 0 and C.x = 'OLD.x'"),
            ("(OLD.a)>=1.5", "(GL_NEW.a)>=1.5"),
            ("X_OLD.a > 0 or OLD = \"it''s OLD.b\"", "X_OLD.a > 0 or OLD = \"it''s OLD.b\""),
            ("OLD.x == 'a''OLD.y' and OLD.z", "GL_NEW.x == 'a''OLD.y' and GL_NEW.z"),
        ] {
            assert_eq!(aliases.in_condition(text), wanted);
        }
    }

    #[test]
    fn only_a_reference_to_an_alias_is_rewritten() {
        let aliases = Aliases(HashMap::from([("OLD".to_owned(), "GL_NEW".to_owned())]));
        for (text, wanted) in [
            ("${jobs.OLD.rows}", "${jobs.GL_NEW.rows}"),
            ("a ${ jobs.OLD.x } b ${batch_no}${", "a ${jobs.GL_NEW.x} b ${batch_no}${"),
            ("OLD ${jobs.GL_OLD.x} ${params.OLD}", "OLD ${jobs.GL_OLD.x} ${params.OLD}"),
            ("${jobs.OLD}", "${jobs.OLD}"),
            ("", ""),
        ] {
            assert_eq!(aliases.in_text(text), wanted);
        }
    }
}
