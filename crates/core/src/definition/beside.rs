//! Exports long scripts to separate files.

use crate::domain::executor::GlueLanguage;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::{Definition, JobDef};
use std::collections::{HashMap, HashSet};

/// Path and text of each script in a separate file.
pub(super) type ReferencedScripts<'a> = HashMap<(&'a GroupCode, &'a JobCode), (String, &'a str)>;

/// The scripts of more than `longest` lines, each with a unique path.
pub(super) fn scripts_beside(defs: &Definition, longest: usize) -> ReferencedScripts<'_> {
    let mut taken = HashSet::new();
    let mut found = HashMap::new();
    for job in &defs.jobs {
        let Some(script) = job.script.as_deref().filter(|s| s.lines().count() > longest) else {
            continue;
        };
        let name = job.code.as_str().replace(':', "_");
        let end = ending(job);
        let mut path = format!("scripts/{name}.{end}");
        while !taken.insert(path.to_lowercase()) {
            path = format!("scripts/{name}_{}.{end}", taken.len());
        }
        found.insert((&job.group, &job.code), (path, script));
    }
    found
}

/// The extension of a script's file.
fn ending(job: &JobDef) -> &str {
    match job.executor.as_ref().and_then(|call| call.language) {
        Some(GlueLanguage::Groovy) => "groovy",
        Some(GlueLanguage::Shell) => "sh",
        Some(GlueLanguage::Python | GlueLanguage::Python2) => "py",
        Some(GlueLanguage::Php) => "php",
        Some(GlueLanguage::Nodejs) => "js",
        Some(GlueLanguage::Powershell) => "ps1",
        None => {
            let said = job.interpreter.as_deref().unwrap_or("sh");
            if said.starts_with("python") { "py" } else { said }
        }
    }
}
