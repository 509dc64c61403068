//! Identifies SQLite files independently of their names: which file a URL refers to, whether it is
//! one of Procession's own, and who may read it.

use sqlx::sqlite::SqliteConnectOptions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;

/// The suffixes of the files that SQLite keeps beside a database.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];
/// Maximum number of successive links; the kernel's own limit.
const LINKS_MAX: u32 = 40;
/// Read and write for the owner, nothing for others.
const PRIVATE_MODE: u32 = 0o600;

/// Files that no data source may open.
#[derive(Clone, Debug, Default)]
pub struct ProtectedFiles(Arc<[ProtectedFile]>);

/// A file that no data source may open.
#[derive(Clone, Debug)]
pub struct ProtectedFile {
    /// What it is, for the error message.
    pub role: &'static str,
    /// Its path; it need not exist yet.
    pub path: PathBuf,
}

impl ProtectedFiles {
    /// These files, and the ones that SQLite keeps beside them.
    pub fn new(files: Vec<ProtectedFile>) -> Self {
        Self(files.into())
    }

    /// A warning for each existing one of these that others may read or write.
    pub fn warn_of_open_modes(&self) -> Vec<String> {
        let warnings = self.0.iter().filter_map(|file| {
            let mode = std::fs::metadata(&file.path).ok()?.permissions().mode() & 0o777;
            let path = file.path.display();
            (mode & 0o077 != 0).then(|| {
                format!(
                    "others may use {path}, {} (mode {mode:03o}); run: chmod go= {path}",
                    file.role
                )
            })
        });
        warnings.collect()
    }

    /// Refuses the URL of a SQLite source that leads to one of these, by whatever path: through a
    /// symbolic or a hard link, another spelling, or as a companion file of either.
    pub fn check_sqlite_url(&self, url: &str) -> Result<(), String> {
        let Some(file) = file_of_url(url)? else { return Ok(()) };
        let wanted = with_companions(&resolve(&file, LINKS_MAX));
        let conflict = self.0.iter().find(|protected| {
            let own = with_companions(&resolve(&protected.path, LINKS_MAX));
            own.iter().any(|own| wanted.iter().any(|wanted| is_same_file(own, wanted)))
        });
        conflict.map_or(Ok(()), |protected| {
            Err(format!("it leads to {}, and a source may not", protected.role))
        })
    }
}

/// The file in the URL of a source; `None` in memory.
///
/// SQLite interprets a name that begins with `file:` as a URL of its own, with unchecked options,
/// and the driver calls databases in memory `sqlx-in-memory-1`: neither is taken for a file.
fn file_of_url(url: &str) -> Result<Option<PathBuf>, String> {
    let options = SqliteConnectOptions::from_str(url).map_err(|error| error.to_string())?;
    let rest = url.trim_start_matches("sqlite://").trim_start_matches("sqlite:");
    let (database, query) = rest.split_once('?').unwrap_or((rest, ""));
    if database == ":memory:" {
        return Ok(None);
    }
    let file = options.get_filename();
    let name = file.to_string_lossy();
    if name.starts_with("file:") || name.contains("sqlx-in-memory-") {
        return Err(
            "write sqlite:PATH, without file: and not with a name of the driver's".to_owned()
        );
    }
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let is_in_memory = pairs.any(|(key, value)| key == "mode" && value == "memory");
    Ok((!is_in_memory && !name.is_empty()).then(|| file.to_owned()))
}

/// Whether the URL names a missing SQLite file, or a database in memory.
pub fn is_absent(url: &str) -> bool {
    let file = file_of_url(url).ok().flatten();
    url.starts_with("sqlite:") && file.is_none_or(|file| !file.exists())
}

/// The SQLite file of the metadata database, if it is one.
pub fn metadata_file(url: &str) -> Option<PathBuf> {
    if !url.starts_with("sqlite:") {
        return None;
    }
    file_of_url(url).ok().flatten()
}

/// A database's file and its companion files.
pub fn with_companions(file: &Path) -> Vec<PathBuf> {
    let beside = COMPANIONS.iter().map(|end| {
        let mut name = file.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    });
    std::iter::once(file.to_owned()).chain(beside).collect()
}

/// The path without links; for a missing file, where it would be created.
fn resolve(path: &Path, links: u32) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if let (Ok(target), 1..) = (std::fs::read_link(path), links) {
        return resolve(&folder.join(target), links - 1);
    }
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Compared without opening: closing a second handle would drop the locks that SQLite holds on it.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    one == other || identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// Creates an empty file that no other user may read, whatever the umask; SQLite gives the
/// companion files the same permissions. An existing one is not changed.
pub(in crate::db) fn create_private(file: &Path) -> io::Result<()> {
    let mut new = std::fs::OpenOptions::new();
    match new.write(true).create_new(true).mode(PRIVATE_MODE).open(file) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes all permissions of other users on the database and its companion files.
pub(in crate::db) fn keep_private(file: &Path) {
    for path in with_companions(file) {
        let Ok(found) = std::fs::metadata(&path) else { continue };
        let mode = found.permissions().mode() & 0o777;
        if !found.is_file() || mode & 0o077 == 0 {
            continue;
        }
        let private = std::fs::Permissions::from_mode(mode & 0o700);
        let path = path.display();
        match std::fs::set_permissions(path.to_string(), private) {
            Ok(()) => {
                tracing::info!(%path, "mode {mode:03o} was open to others; now {:03o}", mode & 0o700)
            }
            Err(error) => tracing::warn!(
                %path, %error, "others may read or write this file (mode {mode:03o}); run: chmod go= {path}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn refuses(protected: &ProtectedFiles, file: &Path) -> bool {
        let said = protected.check_sqlite_url(&format!("sqlite:{}", file.display()));
        assert!(said.as_ref().err().is_none_or(|said| said.contains("own database")), "{said:?}");
        said.is_err()
    }

    #[test]
    fn no_path_leads_to_a_protected_file() {
        let folder = tempfile::tempdir().expect("folder");
        let at = |name: &str| folder.path().join(name);
        let role = "Procession's own database";
        let protected = ProtectedFiles::new(vec![ProtectedFile { role, path: at("meta.db") }]);
        std::fs::create_dir(at("sub")).expect("folder");
        symlink(at("meta.db-wal"), at("dangling")).expect("a link to what is not there");
        assert!(refuses(&protected, &at("meta.db")), "before it is made");
        std::fs::write(at("meta.db"), "").expect("file");
        std::fs::write(at("data.db"), "").expect("file");
        symlink(at("meta.db"), at("soft")).expect("link");
        symlink(folder.path(), at("sub/up")).expect("link");
        std::fs::hard_link(at("meta.db"), at("hard")).expect("link");
        std::fs::hard_link(at("meta.db"), at("data2.db-wal")).expect("link");
        for name in [
            "meta.db",
            "meta.db-wal",
            "meta.db-shm",
            "soft",
            "hard",
            "sub/../meta.db",
            "sub/up/meta.db",
            "dangling",
        ] {
            assert!(refuses(&protected, &at(name)), "{name}");
        }
        assert!(refuses(&protected, &at("data2.db")), "its -wal would be the database");
        assert!(!refuses(&protected, &at("data.db")) && !refuses(&protected, &at("new.db")));
        let escaped = format!("sqlite:{}", at("meta.db").display()).replace("meta", "m%65ta");
        assert!(protected.check_sqlite_url(&escaped).is_err(), "percent-encoded");
    }

    #[test]
    fn names_that_sqlite_reads_as_urls_are_refused() {
        let none = ProtectedFiles::default();
        for url in [
            "sqlite:file:x.db",
            "sqlite:file:x.db%3fvfs=unix-none",
            "sqlite:sqlite:file:x.db",
            "sqlite:sqlx-in-memory-0?mode=memory",
            "sqlite:file:sqlx-in-memory-0?mode=memory",
        ] {
            assert!(none.check_sqlite_url(url).is_err(), "{url}");
        }
        for url in ["sqlite::memory:", "sqlite:x.db?mode=memory", "sqlite://x.db?mode=rwc"] {
            assert_eq!(none.check_sqlite_url(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn files_that_others_may_use_are_warned_of() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("key");
        let files =
            ProtectedFiles::new(vec![ProtectedFile { role: "the key", path: path.clone() }]);
        assert!(files.warn_of_open_modes().is_empty(), "it is not there");
        std::fs::write(&path, "key").expect("file");
        for (mode, count) in [(0o640, 1), (0o604, 1), (0o600, 0), (0o400, 0)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("mode");
            assert_eq!(files.warn_of_open_modes().len(), count, "{mode:03o}");
        }
    }

    #[test]
    fn files_are_taken_away_from_others() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("meta.db");
        create_private(&file).expect("made");
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        let wal = folder.path().join("meta.db-wal");
        std::fs::write(&wal, "").expect("file");
        for path in [&file, &wal] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o664)).expect("mode");
        }
        keep_private(&file);
        assert_eq!((mode(&file), mode(&wal)), (0o600, 0o600));
        create_private(&file).expect("is there");
    }
}
