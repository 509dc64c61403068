//! Reads files that a definition names, relative to its folder and through the caller's reader.

use crate::definition::budget::Limit;
use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::fields;
use crate::definition::node;
use crate::domain::job::SqlText;
use crate::domain::source::DialectName;
use std::collections::{BTreeMap, HashMap};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Placeholder for the dialect in the name of a SQL file.
const DIALECT: &str = "{dialect}";

/// Reads a whole file.
pub(crate) type FileReader<'a> = &'a dyn Fn(&Path) -> std::io::Result<String>;

/// The folder of a definition, and those of its included files.
pub(crate) struct DefinitionFiles<'a> {
    folder: PathBuf,
    included: HashMap<Arc<str>, PathBuf>,
    pub read: FileReader<'a>,
}

/// The name of a file in faults.
pub(crate) fn label(path: &Path) -> Arc<str> {
    Arc::from(path.display().to_string())
}

/// Why a file could not be read, and a hint.
pub(crate) fn excuse(error: &Error) -> (String, &'static str) {
    match error.kind() {
        ErrorKind::NotFound => ("does not exist".to_owned(), "create it or correct the path"),
        ErrorKind::InvalidData => ("is not UTF-8".to_owned(), "save it as UTF-8"),
        _ => (format!("cannot be read: {error}"), "make it readable"),
    }
}

impl<'a> DefinitionFiles<'a> {
    /// Files relative to the `folder` of a definition.
    pub(crate) fn new(folder: PathBuf, read: FileReader<'a>) -> Self {
        Self { folder, included: HashMap::new(), read }
    }

    /// Registers an included file: paths in `file` are relative to `path` from now on.
    pub(crate) fn includes(&mut self, file: &Arc<str>, path: &Path) {
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        self.included.insert(Arc::clone(file), folder);
    }

    /// Resolves a path relative to the file that contains it.
    pub(crate) fn beside(&self, name: &Located<String>) -> PathBuf {
        self.included.get(&name.at.file).unwrap_or(&self.folder).join(&name.value)
    }

    /// The text of a file that `key` names.
    pub(crate) fn read_text(
        &self,
        whose: &str,
        key: &str,
        name: &Located<String>,
        report: &mut FaultReport,
    ) -> Option<String> {
        match (self.read)(&self.beside(name)) {
            Ok(text) if text.trim().is_empty() => {
                let what = format!("{whose}: {key} {} is empty", name.value);
                report.fault(&name.at, what, "write something into it, or name another file");
                None
            }
            Ok(text) if !self.counts(&text, name, report) => None,
            Ok(text) => Some(text.strip_prefix('\u{FEFF}').map_or(text.clone(), str::to_owned)),
            Err(error) => {
                self.missing(whose, key, name, &error, report);
                None
            }
        }
    }

    /// Counts the bytes of a text; each job that names a file holds a copy of it.
    fn counts(&self, text: &str, name: &Located<String>, report: &mut FaultReport) -> bool {
        let bytes = report.add_bytes(text.len());
        report.is_within(Limit::Bytes, bytes, &name.at)
    }

    fn missing(
        &self,
        whose: &str,
        key: &str,
        name: &Located<String>,
        error: &Error,
        report: &mut FaultReport,
    ) {
        let (why, cure) = excuse(error);
        let path = self.beside(name);
        report.fault(&name.at, format!("{whose}: {key} {} {why}", path.display()), cure);
    }

    /// The text of a `sql_file`; if its name contains `{dialect}`, one text per dialect whose file exists.
    pub(crate) fn read_sql(
        &self,
        whose: &str,
        name: &Located<String>,
        report: &mut FaultReport,
    ) -> Option<SqlText> {
        if !name.value.contains(DIALECT) {
            return self.read_text(whose, "sql_file", name, report).map(SqlText::Same);
        }
        let mut texts = BTreeMap::new();
        let mut unreadable = false;
        for dialect in DialectName::ALL {
            let one = name.with_value(name.value.replace(DIALECT, dialect.as_str()));
            match (self.read)(&self.beside(&one)) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                _ => match self.read_text(whose, "sql_file", &one, report) {
                    Some(text) => drop(texts.insert(dialect, text)),
                    None => unreadable = true,
                },
            }
        }
        if texts.is_empty() && !unreadable {
            let what = format!("{whose}: no file {} exists for any dialect", name.value);
            let cure = "create it with {dialect} replaced by sqlite, mysql or postgres";
            report.fault(&name.at, what, cure);
        }
        (!texts.is_empty()).then_some(SqlText::Per(texts))
    }

    /// The map of names to texts in a `procedures_file`.
    pub(crate) fn named_texts(
        &self,
        whose: &str,
        name: &Located<String>,
        report: &mut FaultReport,
    ) -> Vec<(Located<String>, Located<String>)> {
        let Some(text) = self.read_text(whose, "procedures_file", name, report) else {
            return Vec::new();
        };
        let file = label(&self.beside(name));
        match node::parse(&file, &text, report) {
            Some(tree) => fields::named_texts(&format!("{whose}: procedures_file"), tree, report),
            None => Vec::new(),
        }
    }

    /// The tree of a YAML file in the folder; `None` if it does not exist or cannot be read.
    pub(crate) fn read_tree(
        &self,
        name: &str,
        report: &mut FaultReport,
    ) -> Option<node::SourceNode> {
        let path = self.folder.join(name);
        match (self.read)(&path) {
            Ok(text) => node::parse(&label(&path), &text, report),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                let (why, cure) = excuse(&error);
                report.fault(&SourcePlace::new(&label(&path), 0), format!("this file {why}"), cure);
                None
            }
        }
    }
}
