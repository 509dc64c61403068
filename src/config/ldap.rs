//! `[ldap]`: a directory that users log in with.

use super::http::read_grant;
use super::notify::secret;
use super::{BadConfig, SecretSetting};
use crate::domain::access::Grant;
use crate::domain::access::directory_account::normalize_dn;
use crate::outbound::is_here;
use secrecy::SecretString;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// The environment variable with the password of `bind_dn`, if no file is named.
const PASSWORD: &str = "PROCESSION_LDAP_PASSWORD";

/// The password of `bind_dn`, if there is one.
pub type LdapPassword = Option<SecretString>;

/// `[ldap]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ldap {
    /// Its servers; empty: no directory.
    pub urls: Vec<String>,
    /// starttls, none or none_anywhere.
    pub tls: String,
    /// A PEM file; empty: the machine's authorities.
    pub tls_ca: PathBuf,
    /// Time limit in seconds.
    pub timeout_sec: u32,
    /// The account that searches for users; empty: none.
    pub bind_dn: String,
    /// A file; empty: the environment.
    pub bind_password_file: PathBuf,
    /// A secret of `[secret_stores]`; empty: none.
    pub bind_password_secret: SecretSetting,
    /// The search base of users.
    pub base: String,
    /// The filter that finds a user.
    pub user_filter: String,
    /// The DN pattern of a user, if the name determines it.
    pub user_dn: String,
    /// The attribute with the login name.
    pub name_attribute: String,
    /// The search base of groups.
    pub group_base: String,
    /// The filter that finds a user's groups; empty: only `memberOf`.
    pub group_filter: String,
    /// The display name.
    pub name: String,
    /// Whether a user is created at the first login.
    pub auto_create: bool,
    /// Seconds between two rechecks of accounts with sessions or tokens; 0: never.
    pub recheck_sec: u32,
    /// The grants for each group.
    pub grants: Vec<LdapGrant>,
}

/// `[[ldap.grants]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LdapGrant {
    /// The DN of a group of the directory.
    pub ldap_group: String,
    /// A group, or `*`.
    pub group: String,
    /// A role.
    pub role: String,
    /// Additional permissions.
    #[serde(default)]
    pub rights: Vec<String>,
}

fn bad_setting(key: &str, message: impl std::fmt::Display) -> BadConfig {
    BadConfig(format!("ldap.{key} {message}"))
}

impl Ldap {
    /// Whether there is a directory.
    pub fn is_on(&self) -> bool {
        !self.urls.is_empty()
    }

    /// Whether `ldap://` is upgraded to TLS before anything is sent.
    pub fn starts_tls(&self) -> bool {
        self.tls == "starttls"
    }

    /// Whether a user's entry and groups are read with that user's own bind, because no other
    /// account may.
    pub fn reads_as_user(&self) -> bool {
        !self.user_dn.is_empty() && self.bind_dn.is_empty()
    }

    /// Time limit of one server for a login.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_sec.into())
    }

    /// Interval between two rechecks of accounts with sessions or tokens; `None`: no rechecks.
    /// Without a `bind_dn` only the users themselves may read their accounts.
    pub fn recheck_interval(&self) -> Option<Duration> {
        let is_possible = self.is_on() && !self.bind_dn.is_empty();
        let seconds = Some(self.recheck_sec).filter(|seconds| *seconds > 0 && is_possible)?;
        Some(Duration::from_secs(seconds.into()))
    }

    /// What an attacker between this process and the directory could do.
    pub fn weakness(&self) -> Option<String> {
        let is_clear =
            self.urls.iter().filter_map(|url| Url::parse(url).ok()).any(|url| {
                url.scheme() == "ldap" && self.tls == "none_anywhere" && !is_local(&url)
            });
        is_clear.then(|| {
            "passwords go to the directory in clear (ldap.tls = \"none_anywhere\"): one on the way could read them"
                .to_owned()
        })
    }

    /// The password of `bind_dn`, from its file or from the environment.
    pub fn bind_password(&self) -> Result<LdapPassword, BadConfig> {
        if let Some(shared) = self.bind_password_secret.require("ldap.bind_password_secret")? {
            return Ok(Some(shared.get()));
        }
        secret("ldap.bind_password_file", &self.bind_password_file, PASSWORD)
    }

    /// The grants for each group of the directory, by its DN in normalised form.
    pub fn grants(&self) -> Result<Vec<(String, Grant)>, BadConfig> {
        self.grants.iter().map(LdapGrant::parse_grant).collect()
    }

    pub(super) fn check(&self) -> Result<(), BadConfig> {
        self.grants()?;
        if !(1..=60).contains(&self.timeout_sec) {
            return Err(bad_setting(
                "timeout_sec",
                format!("is {}; it may be 1 to 60", self.timeout_sec),
            ));
        }
        if self.recheck_sec != 0 && !(10..=86_400).contains(&self.recheck_sec) {
            let message = format!("is {}; it may be 10 to 86400, or 0 for never", self.recheck_sec);
            return Err(bad_setting("recheck_sec", message));
        }
        if !matches!(self.tls.as_str(), "starttls" | "none" | "none_anywhere") {
            let message = format!("is {:?}; write starttls, none or none_anywhere", self.tls);
            return Err(bad_setting("tls", message));
        }
        for url in &self.urls {
            self.check_url(url)?;
        }
        match self.is_on() {
            true => self.check_searches(),
            false => Ok(()),
        }
    }

    fn check_url(&self, text: &str) -> Result<(), BadConfig> {
        let is_plain = |url: &Url| {
            matches!(url.scheme(), "ldap" | "ldaps")
                && url.host_str().is_some_and(|host| !host.is_empty())
                && url.username().is_empty()
                && url.password().is_none()
                && matches!(url.path(), "" | "/")
                && url.query().is_none()
                && url.fragment().is_none()
        };
        let Some(url) = Url::parse(text).ok().filter(is_plain) else {
            let message = format!(
                "has {text:?}; write scheme, host and port without a path, such as ldaps://dc1.example.com or \
                 ldap://dc1.example.com:389"
            );
            return Err(bad_setting("urls", message));
        };
        if url.scheme() == "ldap" && self.tls == "none" && !is_local(&url) {
            let message = format!(
                "is none, so passwords would go to {} in clear; use ldaps:// or tls = \"starttls\", or say \
                 none_anywhere where the way is protected by other means",
                url.host_str().unwrap_or_default()
            );
            return Err(bad_setting("tls", message));
        }
        Ok(())
    }

    fn check_searches(&self) -> Result<(), BadConfig> {
        let is_dn = |text: &str| normalize_dn(text).is_some();
        if self.user_dn.trim().is_empty() {
            if !is_dn(&self.base) {
                let message =
                    "name the DN below which users are, such as ou=people,dc=example,dc=com";
                return Err(bad_setting("base", format!("is {:?}; {message}", self.base)));
            }
            check_filter("user_filter", &self.user_filter, &["{name}"])?;
        } else if !is_dn(&self.user_dn) || !self.user_dn.contains("{name}") {
            let message = "write a DN with {name}, such as uid={name},ou=people,dc=example,dc=com";
            return Err(bad_setting("user_dn", format!("is {:?}; {message}", self.user_dn)));
        }
        if !self.group_filter.trim().is_empty() {
            check_filter("group_filter", &self.group_filter, &["{dn}", "{name}"])?;
            if !is_dn(&self.group_base) {
                let message =
                    "name the DN below which groups are, such as ou=groups,dc=example,dc=com";
                return Err(bad_setting(
                    "group_base",
                    format!("is {:?}; {message}", self.group_base),
                ));
            }
        }
        if self.name_attribute.trim().is_empty() {
            return Err(bad_setting("name_attribute", "is empty; write uid, or sAMAccountName"));
        }
        Ok(())
    }
}

/// Whether a server is this machine. URLs of schemes that browsers do not know keep an address as a
/// name.
fn is_local(url: &Url) -> bool {
    let is_loopback = |host: &str| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    };
    is_here(url) || url.host_str().is_some_and(is_loopback)
}

/// Refuses a filter that would have the same result for every user, or that no server can parse.
fn check_filter(key: &str, filter: &str, holders: &[&str]) -> Result<(), BadConfig> {
    let text = filter.trim();
    let is_enclosed = text.starts_with('(') && text.ends_with(')');
    let is_usable = ldap3::parse_filter(text.replace("{name}", "x").replace("{dn}", "x")).is_ok();
    if !is_enclosed || !is_usable || !holders.iter().any(|holder| text.contains(holder)) {
        let message = format!(
            "is {filter:?}; write an LDAP filter in parentheses with {}",
            holders.join(" or ")
        );
        return Err(bad_setting(key, message));
    }
    Ok(())
}

impl LdapGrant {
    fn parse_grant(&self) -> Result<(String, Grant), BadConfig> {
        let grant = read_grant("ldap.grants", &self.group, &self.role, &self.rights)?;
        let dn = normalize_dn(&self.ldap_group).ok_or_else(|| {
            BadConfig(format!(
                "ldap.grants: ldap_group {:?}; write the group's whole distinguished name, such as \
                 cn=finance,ou=groups,dc=example,dc=com",
                self.ldap_group
            ))
        })?;
        Ok((dn, grant))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn faults_name_the_key_and_the_fix() {
        let on = |more: &str| format!("urls = ['ldaps://dc1']\n{more}");
        let grant = |dn: &str, role: &str| {
            format!("[[ldap.grants]]\nldap_group = '{dn}'\ngroup = '*'\nrole = '{role}'\n")
        };
        for (text, message) in [
            ("urls = ['dc1']".to_owned(), "ldap.urls has \"dc1\""),
            ("urls = ['http://dc1']".to_owned(), "ldap.urls has \"http://dc1\""),
            ("urls = ['ldap://u@dc1']".to_owned(), "ldap.urls has \"ldap://u@dc1\""),
            ("tls = 'yes'".to_owned(), "ldap.tls is \"yes\"; write starttls, none"),
            (
                "urls = ['ldap://dc1.example']\nbase = 'dc=x'\ntls = 'none'".to_owned(),
                "passwords would go to dc1.example in clear",
            ),
            (on(""), "ldap.base is \"\""),
            (on("base = 'dc=x'\nuser_filter = '(uid=*)'"), "ldap.user_filter is \"(uid=*)\""),
            (on("base = 'dc=x'\nuser_filter = 'uid={name}'"), "in parentheses"),
            (on("user_dn = 'uid=x,dc=x'"), "ldap.user_dn is \"uid=x,dc=x\""),
            (on("base = 'dc=x'\ngroup_filter = '(member=x)'"), "ldap.group_filter is"),
            (on("base = 'dc=x'\ngroup_filter = '(member={dn})'"), "ldap.group_base is"),
            ("timeout_sec = 0".to_owned(), "ldap.timeout_sec is 0; it may be 1 to 60"),
            ("recheck_sec = 5".to_owned(), "ldap.recheck_sec is 5; it may be 10 to 86400"),
            (grant("finance", "admin"), "write the group's whole distinguished name"),
            (grant("cn=f,dc=x", "root"), "ldap.grants: role \"root\""),
        ] {
            let error = Config::parse_text(&format!("[ldap]\n{text}\n")).expect_err(&text);
            assert!(format!("{error:#}").contains(message), "{error:#}");
        }
    }

    #[test]
    fn a_directory_that_is_asked_in_clear_is_warned_of() {
        let read = |url: &str, tls: &str| {
            let text = format!("[ldap]\nurls = ['{url}']\nbase = 'dc=x'\ntls = '{tls}'\n");
            Config::parse_text(&text).expect("config").ldap.weakness().is_some()
        };
        assert!(read("ldap://dc1.example", "none_anywhere"));
        for (url, tls) in [
            ("ldap://dc1.example", "starttls"),
            ("ldaps://dc1.example", "none_anywhere"),
            ("ldap://127.0.0.1:3389", "none"),
            ("ldap://[::1]:3389", "none_anywhere"),
            ("ldap://localhost", "none"),
        ] {
            assert!(!read(url, tls), "{url} {tls}");
        }
    }
}
