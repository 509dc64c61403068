//! A directory in place of a mail server: a mail is a file there, and a retry writes the same file.

use crate::notify::NotSent;
use std::path::PathBuf;

/// The directory for mails.
pub(super) struct MailFolder(pub(super) PathBuf);

impl MailFolder {
    /// Writes a mail completely or not at all.
    pub(super) async fn write(&self, message_id: &str, mail: &[u8]) -> Result<(), NotSent> {
        let name = file_name(message_id);
        let (file, draft) = (self.0.join(&name), self.0.join(format!(".{name}.part")));
        let written = async {
            tokio::fs::create_dir_all(&self.0).await?;
            tokio::fs::write(&draft, mail).await?;
            tokio::fs::rename(&draft, &file).await
        };
        let path = file.display();
        written.await.map_err(|e| NotSent::Later(format!("email: cannot write {path}: {e}")))
    }
}

/// An id may contain any character; a file name may not.
fn file_name(message_id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '@' | '.');
    let name: String = message_id.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    format!("{}.eml", name.trim_start_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn no_id_leaves_the_folder() {
        assert_eq!(file_name("procession-17-ab12@host"), "procession-17-ab12@host.eml");
        assert_eq!(file_name("../../etc/x y"), "_.._etc_x_y.eml");
    }
}
