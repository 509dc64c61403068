//! Properties whose names suggest passwords: their values are not imported, and `${secret.NAME}`
//! takes their place.

use super::{AzkabanFlow, FlowNode};
use crate::domain::access::group_access::GroupAccess;
use crate::domain::job::shared_definitions::{SecretFrom, SecretSource};
use crate::import::draft::Draft;
use crate::import::note::{ImportOrigin, Level};

/// Replacement for a password in a property.
pub(super) const TAKEN_OUT: &str = "password-is-not-carried-over";

/// Parts of names of properties that hold passwords.
const PARTS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
];

fn holds_password(key: &str) -> bool {
    let word: String =
        key.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    PARTS.iter().any(|part| word.contains(part)) || word.ends_with("pwd")
}

/// The name of the secret of a property.
pub(super) fn secret_name(key: &str) -> String {
    let key = key.strip_prefix("env.").unwrap_or(key);
    let made: String =
        key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
    if made.starts_with(|c: char| c.is_ascii_alphabetic()) {
        made.to_uppercase()
    } else {
        format!("SECRET{}", made.to_uppercase())
    }
}

/// Removes the passwords from all properties of flows and nodes.
pub(super) fn take_out(flows: &mut [AzkabanFlow], draft: &mut Draft) {
    for flow in flows {
        let at = flow.at.clone();
        take_out_of(&mut flow.config, &at, draft);
        flow.nodes.iter_mut().for_each(|node| take_out_of_node(node, draft));
    }
}

fn take_out_of_node(node: &mut FlowNode, draft: &mut Draft) {
    let at = node.at.clone();
    take_out_of(&mut node.config, &at, draft);
    node.nodes.iter_mut().for_each(|node| take_out_of_node(node, draft));
}

fn take_out_of(config: &mut Vec<(String, String)>, at: &ImportOrigin, draft: &mut Draft) {
    let mut more = Vec::new();
    for (key, value) in config.iter_mut() {
        if !holds_password(key) || value.trim().is_empty() || value.contains("${") {
            continue;
        }
        let name = secret_name(key);
        if key.starts_with("env.") {
            // A parameter sets an environment variable, and it may be a secret.
            more.push((name.clone(), TAKEN_OUT.to_owned()));
            *value = format!("${{{name}}}");
        } else {
            TAKEN_OUT.clone_into(value);
        }
        add_secret(&name, key, at, draft);
    }
    config.extend(more);
}

fn add_secret(name: &str, key: &str, at: &ImportOrigin, draft: &mut Draft) {
    if !draft.is_first("secret", name) {
        return;
    }
    let (from, access) = (SecretFrom::Env(name.to_owned()), GroupAccess::default());
    draft.defs.shared.secrets.push(SecretSource { name: name.to_owned(), from, access });
    let said = (
        format!(
            "{key} seems to hold a password, which is not carried over: commands take it from the secret {name}"
        ),
        format!("{key} 似乎是密码,未迁移:命令从密钥 {name} 取值"),
    );
    let cure = (
        format!(
            "set {name} in the environment of procession serve, or write where the secret is: secrets: {name}"
        ),
        format!("请在 procession serve 的环境中设置 {name},或在 secrets: {name} 中填写来源"),
    );
    draft.note(Level::Look, at, key, said, cure);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_a_password() {
        for key in [
            "db.password",
            "DB_PASSWD",
            "api.key.apiKey",
            "env.PGPASSWORD",
            "ftp.pwd",
            "access-key-id.accessKey",
        ] {
            assert!(holds_password(key), "{key}");
        }
        for key in ["db.user", "passing.rate", "pwd.folder", "type", "command"] {
            assert!(!holds_password(key), "{key}");
        }
        assert_eq!(secret_name("db.password"), "DB_PASSWORD");
        assert_eq!(secret_name("env.PGPASSWORD"), "PGPASSWORD");
        assert_eq!(secret_name("1.token"), "SECRET1_TOKEN");
    }
}
