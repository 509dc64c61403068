//! outbound: how this program calls another over HTTP. In: whether the way is TLS. Out: a client to be, that leads nowhere else.
//! May name: nothing of ours. Never: a header, a body, a token, a second try.
//! Invariant: certificates are verified, redirects are not followed, proxies are not asked: a token would go with them.

mod address_verifier;
mod own_server;
mod tls_files;

pub use own_server::tls_to_own_server;
pub use tls_files::{ClientTlsFiles, NamedFile, ReloadedClient, client_with, unfit_key};

use reqwest::{ClientBuilder, redirect, retry};
use rustls::client::WantsClientCert;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use std::error::Error;
use std::sync::Arc;
use url::{Host, Url};

/// What a way is protected by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportProtection {
    /// TLS; the authorities that the machine trusts are read, which takes some milliseconds of its disk.
    Tls,
    /// Nothing.
    Clear,
}

impl TransportProtection {
    /// The way to a URL.
    pub fn for_url(url: &Url) -> Self {
        if url.scheme() == "https" { Self::Tls } else { Self::Clear }
    }
}

/// A client to be: TLS by rustls on ring with the roots of the machine, one answer to one request. How long
/// anything may take is the caller's to add.
pub fn client(way: TransportProtection) -> Result<ClientBuilder, String> {
    Ok(client_of(tls_config(way)?))
}

/// The same with a TLS of the caller's, such as one with authorities of its own.
pub fn client_of(tls: ClientConfig) -> ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .no_proxy()
        .referer(false)
        .http1_only()
        .user_agent(concat!("procession/", env!("CARGO_PKG_VERSION")))
}

/// Makes it one.
pub fn built(builder: ClientBuilder) -> Result<reqwest::Client, String> {
    builder.build().map_err(|error| format!("cannot make an HTTP client: {}", chain(error)))
}

fn tls_config(way: TransportProtection) -> Result<ClientConfig, String> {
    let roots = match way {
        TransportProtection::Tls => machine_roots()?,
        TransportProtection::Clear => RootCertStore::empty(),
    };
    tls_with(roots)
}

fn machine_roots() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let fix = "install ca-certificates, or name a file in SSL_CERT_FILE";
        return Err(format!("this machine trusts no authority; {fix}"));
    }
    Ok(roots)
}

/// The cryptography that all TLS of this program is made with: versions 1.2 and 1.3.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn tls_with(roots: RootCertStore) -> Result<ClientConfig, String> {
    Ok(tls_builder(roots)?.with_no_client_auth())
}

/// All TLS of this program to servers of others begins with it.
fn tls_builder(
    roots: RootCertStore,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot prepare TLS: {error}"))?;
    Ok(config.with_root_certificates(roots))
}

/// Whether a URL is of this machine, where nobody listens on the way.
pub fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Whether a call failed because the server's certificate was refused: trying again changes nothing.
pub fn is_certificate_fault(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(fault) = error.downcast_ref::<rustls::Error>() {
            return matches!(fault, rustls::Error::InvalidCertificate(_));
        }
        // An error of input and output hides the one that it was made of: its source is that one's source.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

/// An error with its causes, without the URL, in which a password may stand.
pub fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_names() {
        for (url, here) in [
            ("http://localhost:4318/v1", true),
            ("http://127.0.0.2/", true),
            ("http://[::1]:8088/", true),
            ("http://localhost.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(is_here(&Url::parse(url).expect("a URL")), here, "{url}");
        }
    }
}
