//! outbound: HTTP clients for outgoing calls. In: whether the connection uses TLS. Out: a client builder.
//! May name: nothing of ours. Never: a header, a body, a token, a retry.
//! Invariant: certificates are verified, redirects are not followed, proxies are not used: a token
//! would go with them.

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

/// The protection of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportProtection {
    /// TLS; reads the authorities that the machine trusts, which takes some milliseconds of disk
    /// access.
    Tls,
    /// None.
    Clear,
}

impl TransportProtection {
    /// The protection for a URL.
    pub fn for_url(url: &Url) -> Self {
        if url.scheme() == "https" { Self::Tls } else { Self::Clear }
    }
}

/// A client builder: TLS by rustls on ring with the machine's root certificates, one answer to one
/// request. The caller adds time limits.
pub fn client(way: TransportProtection) -> Result<ClientBuilder, String> {
    Ok(client_of(tls_config(way)?))
}

/// The same with the caller's TLS configuration, such as one with its own authorities.
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

/// Builds the client.
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

/// The cryptography provider of all TLS of this program: versions 1.2 and 1.3.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn tls_with(roots: RootCertStore) -> Result<ClientConfig, String> {
    Ok(tls_builder(roots)?.with_no_client_auth())
}

/// The base of all outgoing TLS configurations.
fn tls_builder(
    roots: RootCertStore,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot prepare TLS: {error}"))?;
    Ok(config.with_root_certificates(roots))
}

/// Whether a URL is on this machine, where no one can intercept the connection.
pub fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Whether a call failed because the server's certificate was refused: a retry will fail too.
pub fn is_certificate_fault(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(fault) = error.downcast_ref::<rustls::Error>() {
            return matches!(fault, rustls::Error::InvalidCertificate(_));
        }
        // An I/O error hides the error it wraps: its source is that error's source.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        cause = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

/// An error with its causes, without the URL, which may contain a password.
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
