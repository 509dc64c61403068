//! The effective settings for display, with secrets masked.

use super::Config;
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};

/// The mask.
const MASK: &str = "***";

impl Config {
    /// The sections with their values from the file and the defaults, overridden by flags and the
    /// environment.
    pub fn shown(&self) -> Value {
        let mut all = serde_json::to_value(&self.tree).unwrap_or_default();
        all["database"]["url"] = json!(self.database.url.expose_secret());
        all["engine"]["max_parallel"] = json!(self.engine.max_parallel);
        all["http"]["listen"] = json!(self.http.listen);
        all["node"]["name"] = json!(self.node.name);
        all["node"]["roles"] = json!(self.node.roles);
        all["node"]["labels"] = json!(self.node.labels);
        masked("", all)
    }
}

/// Whether a key contains a secret; names of variables and files do not.
fn hides(key: &str) -> bool {
    let is_secret = ["password", "secret", "token"].iter().any(|word| key.contains(word));
    // `script.secrets` is how secrets are passed to a script.
    is_secret && key != "secrets" && !key.ends_with("_env") && !key.ends_with("_file")
}

fn masked(key: &str, value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(key, value): (String, Value)| (key.clone(), masked(&key, value));
            Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(|item| masked(key, item)).collect(),
        Value::String(text) if hides(key) && !text.is_empty() => json!(MASK),
        Value::String(text) => json!(without_password(&text)),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
    }
}

/// A URL without the password, and without secret values in its query; any other text unchanged.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    // A password may contain any character; the host begins after the last @.
    let place = match place.rsplit_once('@') {
        Some((who, host)) => match who.split_once(':') {
            Some((user, _)) => format!("{user}:{MASK}@{host}"),
            None => format!("{who}@{host}"),
        },
        None => place.to_owned(),
    };
    let query = query.map(|query| {
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, _)) if hides(&name.to_lowercase()) => format!("{name}={MASK}"),
            Some(_) | None => pair.to_owned(),
        };
        format!("?{}", query.split('&').map(pair).collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}://{place}{}", query.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (text, wanted) in [
            ("mysql://root:hunter2@h:3306/db", "mysql://root:***@h:3306/db"),
            ("postgres://u:p@ss:w@h/db?sslmode=require", "postgres://u:***@h/db?sslmode=require"),
            ("postgres://u@h/db?password=hunter2&a=b", "postgres://u@h/db?password=***&a=b"),
            ("sqlite:procession.db", "sqlite:procession.db"),
            ("https://p.example", "https://p.example"),
        ] {
            assert_eq!(without_password(text), wanted);
        }
    }

    #[test]
    fn the_settings_are_shown_whole_but_for_what_hides() {
        let text = "[database]\nurl = 'mysql://root:hunter2@h/db'\n[engine]\nmax_parallel = 3\n";
        let mut config = Config::parse_text(text).expect("settings");
        config.engine.max_parallel = 7;
        let shown = config.shown();
        assert_eq!(shown["engine"]["max_parallel"], 7);
        assert_eq!(shown["engine"]["lease_sec"], 15);
        assert!(!shown.to_string().contains("hunter2"), "{shown}");
        assert_eq!(shown["notify"]["mail"]["password_file"], "");
        assert_eq!(shown["script"]["secrets"], "environment");
    }
}
