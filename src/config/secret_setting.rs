//! Passwords in Procession's own settings that refer to `[secret_stores]`: of its database, its
//! mail server, its directory and its login provider.

use super::{BadConfig, Config};
use crate::domain::job::secret::SharedSecret;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The name of a secret, and its value once it was read. Clones share the value.
#[derive(Clone, Debug, Default)]
pub struct SecretSetting {
    /// Empty: none.
    name: String,
    value: Arc<OnceLock<SharedSecret>>,
}

impl<'de> Deserialize<'de> for SecretSetting {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self { name: String::deserialize(from)?, value: Arc::default() })
    }
}

impl SecretSetting {
    /// The secret's name; `None` when the setting is empty.
    pub fn name(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(self.name.as_str())
    }

    /// Its last value, which is replaced when the secret is.
    pub fn value(&self) -> Option<SharedSecret> {
        self.value.get().cloned()
    }

    /// Stores the value that was just read; returns whether it has changed.
    pub fn replace(&self, read: SecretString) -> bool {
        match self.value.get() {
            Some(value) => value.replace(read),
            None => self.value.set(SharedSecret::new(read)).is_ok(),
        }
    }

    /// Its value, for a setting that requires it.
    pub fn require(&self, setting: &str) -> Result<Option<SharedSecret>, BadConfig> {
        let Some(name) = self.name() else { return Ok(None) };
        let unread = || {
            BadConfig(format!(
                "{setting} is the secret {name}, which could not be read; procession secret check {name} says why"
            ))
        };
        self.value().ok_or_else(unread).map(Some)
    }
}

impl Config {
    /// The settings that may name a secret, by key.
    pub fn secret_settings(&self) -> [(&'static str, &SecretSetting); 4] {
        [
            ("database.password_secret", &self.database.password_secret),
            ("notify.mail.password_secret", &self.notify.mail.password_secret),
            ("ldap.bind_password_secret", &self.ldap.bind_password_secret),
            ("http.oidc.client_secret_name", &self.http.oidc.client_secret_name),
        ]
    }

    pub(super) fn check_secret_settings(&self) -> Result<(), BadConfig> {
        let stores = self.secret_stores()?;
        let oidc = &self.http.oidc;
        let files: [(&str, &Path); 4] = [
            ("database.password_file", &self.database.password_file),
            ("notify.mail.password_file", &self.notify.mail.password_file),
            ("ldap.bind_password_file", &self.ldap.bind_password_file),
            ("http.oidc.client_secret_file", &oidc.client_secret_file),
        ];
        for ((key, setting), (file_key, file)) in self.secret_settings().into_iter().zip(files) {
            let Some(name) = setting.name() else { continue };
            if !file.as_os_str().is_empty() {
                return Err(BadConfig(format!(
                    "{key} and {file_key} are both set; keep one of the two"
                )));
            }
            match stores.find_secret(name) {
                None => {
                    return Err(BadConfig(format!(
                        "{key} is {name:?}, which no [secret_stores] names; add it there: secrets.{name} = {{ \
                         for_procession = true }}"
                    )));
                }
                Some(secret) if !secret.entry.for_procession => {
                    return Err(BadConfig(format!(
                        "{key} is {name:?}, which is not for Procession itself; write for_procession = true at \
                         secret_stores.{}.secrets.{name}",
                        secret.store
                    )));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn a_password_is_a_secret_that_is_for_procession() {
        let text = |entry: &str, more: &str| {
            format!(
                "[database]\npassword_secret = 'DB_PW'\n{more}[secret_stores.own]\ntype = 'folder'\npath = '/s'\n\
                 [secret_stores.own.secrets]\n{entry}\n"
            )
        };
        let config =
            Config::parse_text(&text("DB_PW = { for_procession = true }", "")).expect("config");
        let setting = &config.database.password_secret;
        assert_eq!((setting.name(), setting.value().is_none()), (Some("DB_PW"), true));
        assert!(config.database_settings().password.is_none());
        let another = config.clone();
        assert!(setting.replace("first".into()) && !setting.replace("first".into()));
        assert!(setting.replace("second".into()), "another one");
        let password = another.database_settings().password.expect("the clone has it");
        assert_eq!(secrecy::ExposeSecret::expose_secret(&password), "second");
        for (entry, more, message) in [
            ("OTHER = { groups = ['*'] }", "", "which no [secret_stores] names"),
            ("DB_PW = { groups = ['*'] }", "", "write for_procession = true at secret_stores.own"),
            ("DB_PW = { for_procession = true }", "password_file = '/p'\n", "keep one of the two"),
        ] {
            let error = Config::parse_text(&text(entry, more)).expect_err(message);
            assert!(format!("{error:#}").contains(message), "{error:#}");
        }
    }
}
