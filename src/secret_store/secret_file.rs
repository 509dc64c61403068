//! Reads a file with a secret. A path in a definition or in the settings may lead to an endless
//! device, a pipe without a writer, or gigabytes. So only a regular file of a limited size is read.
//! Symbolic links are followed, because mounts of Kubernetes consist of them.

use nix::fcntl::OFlag;
use secrecy::{ExposeSecret as _, SecretString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Maximum size of a file with a secret, in bytes.
pub const LARGEST_SECRET_FILE: u64 = 65_536;

/// The environment variable with the directory in which systemd puts the credentials of a unit.
const CREDENTIALS_FOLDER: &str = "CREDENTIALS_DIRECTORY";

/// Why a file contains no usable secret; `Display` is the message for the user and contains nothing
/// of the file.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// It cannot be opened or read.
    #[error("the file {0} cannot be read ({1}); correct the path or its permissions")]
    Unreadable(PathBuf, io::Error),
    /// It is not a regular file.
    #[error("{0} is {1}; name a regular file")]
    NotAFile(PathBuf, &'static str),
    /// It is too long for a secret.
    #[error(
        "the file {0} has more than {LARGEST_SECRET_FILE} bytes, so it is no secret; name another file"
    )]
    TooLarge(PathBuf),
    /// It is not text.
    #[error("the file {0} is not UTF-8 text, or holds a NUL character; a secret is text")]
    NotText(PathBuf),
    /// The path begins with systemd's directory and there is none.
    #[error(
        "the path {0} needs the environment variable {CREDENTIALS_FOLDER}, which is not set; systemd sets it for \
         a unit with LoadCredential="
    )]
    NoCredentials(PathBuf),
}

/// The content of a file, and who else may read it.
#[derive(Debug)]
pub struct SecretFile {
    text: SecretString,
    mode: u32,
}

impl SecretFile {
    /// Reads a file synchronously. `$CREDENTIALS_DIRECTORY` at the start of the path is systemd's
    /// directory.
    pub fn read_file(path: &Path) -> Result<Self, SecretFileError> {
        let path = &resolve_path(path)?;
        let unreadable = |error| SecretFileError::Unreadable(path.clone(), error);
        // Before it is opened: opening a device may have effects.
        require_file(path, &std::fs::metadata(path).map_err(unreadable)?)?;
        let (file, found) = open_file(path).map_err(unreadable)?;
        require_file(path, &found)?;
        let mut bytes = Vec::new();
        file.take(LARGEST_SECRET_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > LARGEST_SECRET_FILE {
            return Err(SecretFileError::TooLarge(path.clone()));
        }
        let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
        let text = text.ok_or_else(|| SecretFileError::NotText(path.clone()))?;
        Ok(Self { text: text.into(), mode: found.mode() })
    }

    /// The same on a blocking thread: a file may be on a network.
    pub async fn read_aside(path: &Path) -> Result<Self, SecretFileError> {
        let owned = path.to_owned();
        let reading = tokio::task::spawn_blocking(move || Self::read_file(&owned));
        let broken = |error| SecretFileError::Unreadable(path.to_owned(), io::Error::other(error));
        reading.await.unwrap_or_else(|error| Err(broken(error)))
    }

    /// The first line, without its line end: what follows is a remark.
    pub fn first_line(&self) -> SecretString {
        self.text.expose_secret().lines().next().unwrap_or_default().into()
    }

    /// The complete content, without the end of its last line: tools add one that is not part of
    /// the secret.
    pub fn whole(&self) -> SecretString {
        let text = self.text.expose_secret();
        let text = text.strip_suffix('\n').unwrap_or(text);
        text.strip_suffix('\r').unwrap_or(text).into()
    }

    /// The fault of its permissions: other users of the machine could read the secret.
    pub fn permission_warning(&self, path: &Path) -> Option<String> {
        let others = match (self.mode & 0o040 != 0, self.mode & 0o004 != 0) {
            (_, true) => "every user of this machine",
            (true, false) => "the file's group",
            (false, false) => return None,
        };
        let (path, mode) = (path.display(), self.mode & 0o777);
        Some(format!(
            "the file {path} has mode {mode:04o}, so {others} may read the secret; use 0400 or 0600"
        ))
    }
}

/// A path with systemd's directory resolved.
pub fn resolve_path(path: &Path) -> Result<PathBuf, SecretFileError> {
    let Ok(rest) = path.strip_prefix(format!("${CREDENTIALS_FOLDER}")) else {
        return Ok(path.to_owned());
    };
    match std::env::var_os(CREDENTIALS_FOLDER) {
        Some(folder) if !folder.is_empty() => Ok(PathBuf::from(folder).join(rest)),
        Some(_) | None => Err(SecretFileError::NoCredentials(path.to_owned())),
    }
}

/// Opens without waiting for a writer: between the check and the opening the file may have been
/// replaced by a pipe.
fn open_file(path: &Path) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let found = file.metadata()?;
    Ok((file, found))
}

fn require_file(path: &Path, found: &Metadata) -> Result<(), SecretFileError> {
    let kind = found.file_type();
    let words = match () {
        () if kind.is_file() && found.len() > LARGEST_SECRET_FILE => {
            return Err(SecretFileError::TooLarge(path.to_owned()));
        }
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(SecretFileError::NotAFile(path.to_owned(), words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn only_a_regular_file_of_a_limited_size_is_read() {
        let folder = tempfile::tempdir().expect("folder");
        let at = |name: &str| folder.path().join(name);
        nix::unistd::mkfifo(&at("pipe"), Mode::S_IRWXU).expect("a pipe");
        std::fs::write(at("long"), "x".repeat(65_537)).expect("file");
        std::fs::write(at("binary"), [0xff, 0xfe]).expect("file");
        std::fs::write(at("nul"), "hunter\0two").expect("file");
        symlink("/dev/zero", at("zero")).expect("a link");
        symlink("circle", at("circle")).expect("a link");
        for (name, words) in [
            ("none", "cannot be read (No such file"),
            ("pipe", "is a pipe; name a regular file"),
            (".", "is a folder"),
            ("zero", "is a device"),
            ("circle", "cannot be read (Too many levels"),
            ("long", "has more than 65536 bytes"),
            ("binary", "is not UTF-8 text"),
            ("nul", "is not UTF-8 text"),
        ] {
            let error = SecretFile::read_file(&at(name)).expect_err(name).to_string();
            assert!(error.contains(words) && !error.contains("hunter"), "{name}: {error}");
        }
        std::fs::write(at("full"), "x".repeat(65_536)).expect("file");
        assert!(SecretFile::read_file(&at("full")).is_ok());
        // The layout of a Kubernetes mount.
        std::fs::create_dir(at("..2026")).expect("folder");
        std::fs::write(at("..2026").join("pw"), "hunter22\nand more\n").expect("file");
        symlink("..2026", at("..data")).expect("a link");
        symlink("..data/pw", at("pw")).expect("a link");
        let read = SecretFile::read_file(&at("pw")).expect("a secret");
        assert_eq!(read.first_line().expose_secret(), "hunter22");
        assert_eq!(read.whole().expose_secret(), "hunter22\nand more");
    }

    #[test]
    fn a_mode_that_others_may_read_is_a_warning() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("pw");
        std::fs::write(&path, "hunter22").expect("file");
        for (mode, words) in [
            (0o600, None),
            (0o400, None),
            (0o640, Some("mode 0640, so the file's group may read the secret")),
            (0o644, Some("mode 0644, so every user of this machine may read")),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("mode");
            let warning = SecretFile::read_file(&path).expect("read").permission_warning(&path);
            assert_eq!(warning.is_some(), words.is_some(), "{mode:o}");
            assert!(warning.unwrap_or_default().contains(words.unwrap_or_default()), "{mode:o}");
        }
    }

    #[test]
    fn the_folder_of_systemd_is_named_by_its_variable() {
        let plain = Path::new("/etc/x");
        assert_eq!(resolve_path(plain).expect("as it is"), plain);
        // Tests are not units of systemd.
        let error = resolve_path(Path::new("$CREDENTIALS_DIRECTORY/pw")).expect_err("not set");
        assert!(error.to_string().contains("LoadCredential="), "{error}");
    }
}
