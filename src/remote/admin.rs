//! The XXL-JOB admins that this process is an executor of: one database of theirs, several
//! addresses.
//!
//! They are called in order until one accepts, as XXL-JOB's own executors do.

use crate::outbound::ClientTlsFiles;
use crate::remote::client::Poster;
use crate::wire::xxl::{self, EXECUTOR_GROUP, Registry};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use url::Url;

pub use crate::wire::xxl::{Callback, XxlDialect};

/// Minimum length of a token.
const TOKEN_MIN: usize = 16;
/// Publicly known tokens.
const KNOWN_TOKENS: [&str; 3] = ["default_token", "xxl-job", "123456"];

/// The addresses of the admins, and this executor.
#[derive(Clone, Debug)]
pub struct AdminSettings {
    /// Their addresses, `http://xxl.example:8080/xxl-job-admin`.
    pub addresses: Vec<String>,
    /// The name of the executor.
    pub app_name: String,
    /// The shared token.
    pub token: SecretString,
    /// Their protocol dialect; detected if `None`.
    pub dialect: Option<XxlDialect>,
    /// Time limit of one call.
    pub limit: Duration,
    /// TLS files for connections to them.
    pub tls: ClientTlsFiles,
}

/// The admins.
pub struct Admins {
    places: Vec<AdminAddress>,
    poster: Poster,
    limit: Duration,
}

struct AdminAddress {
    base: Url,
    /// The detected dialect.
    dialect: Mutex<Option<XxlDialect>>,
}

/// No admin accepted; the text contains the answer of each.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AdminRefusal(String);

impl Admins {
    /// Checks the settings; the error is a sentence.
    pub fn new(settings: &AdminSettings) -> Result<Self, String> {
        check_token(settings.token.expose_secret())?;
        let bases: Vec<Url> =
            settings.addresses.iter().map(|text| base_url(text)).collect::<Result<_, _>>()?;
        if bases.is_empty() {
            return Err("no address of an admin is given".to_owned());
        }
        let AdminSettings { app_name, token, tls, limit, .. } = settings;
        let poster = Poster::new(&bases, app_name, token, tls, *limit)?;
        let place = |base| AdminAddress { base, dialect: Mutex::new(settings.dialect) };
        let places = bases.into_iter().map(place).collect();
        Ok(Self { places, poster, limit: settings.limit })
    }

    /// Maximum duration of one call to all of them.
    pub fn longest(&self) -> Duration {
        self.limit.saturating_mul(u32::try_from(self.places.len()).unwrap_or(u32::MAX)) * 2
    }

    /// Admins whose token and messages are sent without encryption.
    pub fn unprotected(&self) -> impl Iterator<Item = &str> {
        let is_open = |url: &&Url| url.scheme() == "http" && !is_here(url);
        self.places.iter().map(|place| &place.base).filter(is_open).map(Url::as_str)
    }

    /// Registers this executor; to be repeated within 90 s.
    pub async fn register(&self, app_name: &str, address: &str) -> Result<(), AdminRefusal> {
        self.post_request("registry", &registry(app_name, address)).await
    }

    /// Deregisters this executor.
    pub async fn remove(&self, app_name: &str, address: &str) -> Result<(), AdminRefusal> {
        self.post_request("registryRemove", &registry(app_name, address)).await
    }

    /// Reports ends of runs. Acceptance does not mean that the admin has stored it: it does so
    /// later.
    pub async fn callback(&self, items: &[Callback]) -> Result<(), AdminRefusal> {
        let mut refusals = Vec::new();
        for place in &self.places {
            match self.call_back(place, items).await {
                Ok(()) => return Ok(()),
                Err(words) => refusals.push(format!("{}: {words}", place.base)),
            }
        }
        Err(AdminRefusal(refusals.join("; ")))
    }

    /// The format of 2.3 to 3.4 is tried first; an admin that refuses it may be of another version.
    async fn call_back(&self, place: &AdminAddress, items: &[Callback]) -> Result<(), String> {
        let known = *place.dialect.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dialect) = known {
            return self
                .poster
                .post_json(request_url(place, "callback"), &xxl::callbacks(dialect, items))
                .await;
        }
        let first = match self
            .poster
            .post_json(request_url(place, "callback"), &with_both_versions(items))
            .await
        {
            Ok(()) => return Ok(()),
            Err(words) => words,
        };
        let newer = xxl::callbacks(XxlDialect::D3, items);
        match self.poster.post_json(request_url(place, "callback"), &newer).await {
            Ok(()) => {
                let mut known = place.dialect.lock().unwrap_or_else(PoisonError::into_inner);
                *known = Some(XxlDialect::D3);
                Ok(())
            }
            // The answer to a wrong format would explain less.
            Err(_) => Err(first),
        }
    }

    async fn post_request(&self, name: &str, body: &Value) -> Result<(), AdminRefusal> {
        let mut refusals = Vec::new();
        for place in &self.places {
            match self.poster.post_json(request_url(place, name), body).await {
                Ok(()) => return Ok(()),
                Err(words) => refusals.push(format!("{}: {words}", place.base)),
            }
        }
        Err(AdminRefusal(refusals.join("; ")))
    }
}

fn registry(app_name: &str, address: &str) -> Value {
    json!(Registry {
        registry_group: EXECUTOR_GROUP.to_owned(),
        registry_key: app_name.to_owned(),
        registry_value: address.to_owned(),
    })
}

/// The list with the fields of 2.2 and of 2.3 in each item, as pyxxl sends it: each version reads
/// its own.
fn with_both_versions(items: &[Callback]) -> Value {
    let (mut new, old) =
        (xxl::callbacks(XxlDialect::D1, items), xxl::callbacks(XxlDialect::D0, items));
    for (new, old) in
        new.as_array_mut().into_iter().flatten().zip(old.as_array().into_iter().flatten())
    {
        new["executeResult"] = old["executeResult"].clone();
    }
    new
}

fn request_url(place: &AdminAddress, name: &str) -> Url {
    let mut url = place.base.clone();
    let path = format!("{}/api/{name}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}

/// The base URL of an admin; some clients need `/api` after it, so people paste that.
fn base_url(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text.trim()).map_err(|error| {
        format!(
            "the admin's address is no URL: {error}; write it as http://HOST:8080/xxl-job-admin"
        )
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("the admin's address must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "the admin's address holds a user or a password; the token is what it asks for"
                .to_owned(),
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("the admin's address has a part behind ? or #; give its root".to_owned());
    }
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/api").unwrap_or(path).to_owned();
    url.set_path(&path);
    Ok(url)
}

/// Refuses a token that is public, or could be guessed.
pub fn check_token(token: &str) -> Result<(), String> {
    if token.is_empty() {
        return Err(
            "there is no token; set PROCESSION_XXL_TOKEN or give --token-file: the same as \
             xxl.job.accessToken of the admin"
                .to_owned(),
        );
    }
    if KNOWN_TOKENS.contains(&token) {
        return Err(
            "the token is one that everybody knows; set another in the admin (xxl.job.accessToken) \
             and here"
                .to_owned(),
        );
    }
    if token.chars().count() < TOKEN_MIN {
        return Err(format!(
            "the token has less than {TOKEN_MIN} characters; set a longer one in the admin \
             (xxl.job.accessToken) and here, for example of: openssl rand -hex 24"
        ));
    }
    if !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err("the token may hold ASCII letters, digits and signs, and no spaces".to_owned());
    }
    Ok(())
}

fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_others_know_are_refused() {
        for (token, message) in [
            ("", "there is no token"),
            ("default_token", "everybody knows"),
            ("short-one", "less than 16"),
            ("a token with spaces", "no spaces"),
        ] {
            let words = check_token(token).expect_err(token);
            assert!(words.contains(message), "{words}");
            assert!(token.is_empty() || !words.contains(token), "{words}");
        }
        assert_eq!(check_token("0123456789abcdef"), Ok(()));
    }

    #[test]
    fn an_address_is_joined_with_one_slash() {
        for (text, wanted) in [
            ("http://xxl:8080/xxl-job-admin", "http://xxl:8080/xxl-job-admin/api/callback"),
            ("http://xxl:8080/xxl-job-admin/", "http://xxl:8080/xxl-job-admin/api/callback"),
            ("http://xxl:8080/xxl-job-admin/api/", "http://xxl:8080/xxl-job-admin/api/callback"),
            ("https://xxl", "https://xxl/api/callback"),
        ] {
            let place =
                AdminAddress { base: base_url(text).expect(text), dialect: Mutex::new(None) };
            assert_eq!(request_url(&place, "callback").as_str(), wanted);
        }
        for bad in ["xxl:8080/a", "ftp://xxl/", "http://u:p4ssw0rd@xxl/", "http://xxl/?a=1", ""] {
            let words = base_url(bad).expect_err(bad);
            assert!(!words.contains("p4ssw0rd"), "{words}");
        }
    }

    #[test]
    fn a_list_for_whoever_may_read_it_has_the_fields_of_both() {
        let told = Callback {
            log_id: 1,
            log_date_time: 2,
            handle_code: 500,
            handle_msg: Some("no".to_owned()),
        };
        assert_eq!(
            with_both_versions(&[told]).to_string(),
            r#"[{"executeResult":{"code":500,"msg":"no"},"handleCode":500,"handleMsg":"no","logDateTim":2,"logId":1}]"#
        );
    }
}
