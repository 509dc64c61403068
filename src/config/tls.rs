//! `http.tls_…` and `executors.tls_…`: certificates and keys of listeners, and of calls to
//! executors and their admins.

use super::{BadConfig, Config, ExecutorSettings, HttpSettings};
use crate::domain::access::certificate_expiry::CertificateRole;
use crate::outbound::{ClientTlsFiles, NamedFile, provider, unfit_key};
use ring::digest::{Context, SHA256};
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use std::sync::Arc;

/// Which clients of a listener must present a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificateRule {
    /// Executors of XXL-JOB: their endpoints require one.
    Executors,
    /// Every client: without one the connection is refused.
    Everyone,
}

/// TLS files of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTlsFiles {
    cert: NamedFile,
    key: NamedFile,
    client_ca: Option<(NamedFile, ClientCertificateRule)>,
    client_crl: Option<NamedFile>,
}

/// The TLS configuration of a listener, from its files.
#[derive(Clone, Debug)]
pub struct ListenerTlsConfig {
    /// For rustls.
    pub server: Arc<ServerConfig>,
    /// SHA-256 of the content of all files.
    pub digest: [u8; 32],
}

impl ListenerTlsFiles {
    /// Which clients must present a certificate; `None`: none.
    pub fn client_rule(&self) -> Option<ClientCertificateRule> {
        self.client_ca.as_ref().map(|(_, rule)| *rule)
    }

    /// The same, with a certificate required from every client if there are authorities.
    #[must_use]
    pub fn for_everyone(mut self) -> Self {
        if let Some((_, rule)) = &mut self.client_ca {
            *rule = ClientCertificateRule::Everyone;
        }
        self
    }

    /// The same without client certificates.
    #[must_use]
    pub fn without_client_certificates(self) -> Self {
        Self { client_ca: None, client_crl: None, ..self }
    }

    /// The certificate that the listener presents.
    pub fn own_certificate(&self) -> Result<CertificateDer<'static>, BadConfig> {
        let read = self.cert.read_bytes().and_then(|pem| self.cert.certificates(&pem));
        let first = read.map_err(BadConfig)?.into_iter().next();
        first.ok_or_else(|| BadConfig(self.cert.fault("it holds no certificate")))
    }

    /// Reads them; the error names setting, file and fix, and contains nothing of the files.
    pub fn read_files(&self) -> Result<ListenerTlsConfig, BadConfig> {
        self.load_files().map_err(BadConfig)
    }

    fn load_files(&self) -> Result<ListenerTlsConfig, String> {
        let (cert, key) = (self.cert.read_bytes()?, self.key.read_bytes()?);
        let mut digest = Context::new(&SHA256);
        for bytes in [&cert, &key] {
            digest.update(&(bytes.len() as u64).to_be_bytes());
            digest.update(bytes);
        }
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("cannot prepare TLS: {error}"))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some((file, rule)) => {
                let pem = file.read_bytes()?;
                digest.update(&pem);
                let roots = Arc::new(file.authorities(&pem)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
                let verifier = match &self.client_crl {
                    None => verifier,
                    Some(lists) => {
                        let pem = lists.read_bytes()?;
                        digest.update(&pem);
                        verifier.with_crls(lists.revocation_lists(&pem)?)
                    }
                };
                let verifier = match rule {
                    ClientCertificateRule::Executors => verifier.allow_unauthenticated(),
                    ClientCertificateRule::Everyone => verifier,
                };
                let verifier = verifier.build().map_err(|error| {
                    let named = self.client_crl.as_ref().unwrap_or(file);
                    named.fault(error)
                })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (chain, private) = (self.cert.certificates(&cert)?, self.key.private_key(&key)?);
        let server = builder.with_single_cert(chain, private);
        let mut server = server.map_err(|error| unfit_key(&self.cert, &self.key, &error))?;
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.finish().as_ref());
        Ok(ListenerTlsConfig { server: Arc::new(server), digest: bytes })
    }
}

impl HttpSettings {
    /// The scheme of the listener's URL.
    pub fn scheme(&self) -> &'static str {
        if self.listener_files().is_some() { "https" } else { "http" }
    }

    /// TLS files of the listener; `None` without TLS.
    pub fn listener_files(&self) -> Option<ListenerTlsFiles> {
        let cert = NamedFile::from_setting("http.tls_cert", &self.tls_cert)?;
        let key = NamedFile::from_setting("http.tls_key", &self.tls_key)?;
        let rule = match self.tls_client_for.as_str() {
            "all" => ClientCertificateRule::Everyone,
            _ => ClientCertificateRule::Executors,
        };
        let client_ca = NamedFile::from_setting("http.tls_client_ca", &self.tls_client_ca);
        let client_ca = client_ca.map(|file| (file, rule));
        let client_crl = NamedFile::from_setting("http.tls_client_crl", &self.tls_client_crl);
        Some(ListenerTlsFiles { cert, key, client_ca, client_crl })
    }

    /// Refuses settings that contradict each other. Files are read when a listener is opened.
    pub(super) fn check_tls(&self) -> Result<(), BadConfig> {
        let bad = |message: &str| Err(BadConfig(format!("http.{message}")));
        let is_set = |path: &std::path::Path| !path.as_os_str().is_empty();
        match (is_set(&self.tls_cert), is_set(&self.tls_key)) {
            (true, false) => {
                return bad(
                    "tls_cert is set and http.tls_key is not; name the file with its private key",
                );
            }
            (false, true) => {
                return bad(
                    "tls_key is set and http.tls_cert is not; name the file with the certificate",
                );
            }
            (false, false) if is_set(&self.tls_client_ca) => {
                return bad("tls_client_ca needs TLS; set http.tls_cert and http.tls_key too");
            }
            _ if is_set(&self.tls_client_crl) && !is_set(&self.tls_client_ca) => {
                return bad(
                    "tls_client_crl needs http.tls_client_ca; name the authorities whose certificates it revokes",
                );
            }
            (false, false) if self.probes_tls => {
                return bad("probes_tls needs http.tls_cert and http.tls_key");
            }
            _ => {}
        }
        if !matches!(self.tls_client_for.as_str(), "executors" | "all") {
            let message =
                format!("tls_client_for is {:?}; write executors or all", self.tls_client_for);
            return bad(&message);
        }
        if self.listener_files().is_some()
            && self.public_url.trim().to_lowercase().starts_with("http:")
        {
            return bad(
                "public_url begins with http:// and the listener speaks TLS; write https://",
            );
        }
        Ok(())
    }
}

impl ExecutorSettings {
    /// TLS files for calls to executors, and from an executor to its admins.
    pub fn client_files(&self) -> ClientTlsFiles {
        let cert = NamedFile::from_setting("executors.tls_cert", &self.tls_cert);
        let key = NamedFile::from_setting("executors.tls_key", &self.tls_key);
        ClientTlsFiles {
            authorities: NamedFile::from_setting("executors.tls_ca", &self.tls_ca),
            identity: cert.zip(key),
        }
    }
}

impl Config {
    pub(super) fn check_executor_tls(&self) -> Result<(), BadConfig> {
        let is_set = |path: &std::path::Path| !path.as_os_str().is_empty();
        let executors = &self.executors;
        if is_set(&executors.tls_cert) != is_set(&executors.tls_key) {
            return Err(BadConfig(
                "executors.tls_cert and executors.tls_key belong together; set both or neither"
                    .to_owned(),
            ));
        }
        // Reported at the start and not by the first run that fails.
        match executors.client_files() {
            files if files == ClientTlsFiles::default() => Ok(()),
            files => files.config().map(|_| ()).map_err(BadConfig),
        }
    }

    /// The files with certificates and revocation lists that this process uses.
    pub fn certificate_files(&self) -> Vec<(NamedFile, CertificateRole)> {
        let http = &self.http;
        let named = [
            ("http.tls_cert", &http.tls_cert, CertificateRole::Own),
            ("http.tls_client_ca", &http.tls_client_ca, CertificateRole::Authority),
            ("http.tls_client_crl", &http.tls_client_crl, CertificateRole::RevocationList),
            ("executors.tls_cert", &self.executors.tls_cert, CertificateRole::Own),
            ("executors.tls_ca", &self.executors.tls_ca, CertificateRole::Authority),
            ("ldap.tls_ca", &self.ldap.tls_ca, CertificateRole::Authority),
            ("notify.mail.ca_file", &self.notify.mail.ca_file, CertificateRole::Authority),
        ];
        let stores = self.secret_stores.values().map(|store| &store.tls_ca);
        let stores = stores.map(|path| ("secret_stores.tls_ca", path, CertificateRole::Authority));
        let all = named.into_iter().chain(stores);
        all.filter_map(|(key, path, role)| Some((NamedFile::from_setting(key, path)?, role)))
            .collect()
    }

    /// What an attacker between clients and the listener could do.
    pub fn listener_weakness(&self) -> Option<String> {
        let address = self.listening_options().ok()?.listen?;
        let is_behind_proxy =
            self.http.public_url.starts_with("https:") && !self.http.trusted_proxies.is_empty();
        let is_weak =
            !address.ip().is_loopback() && self.http.listener_files().is_none() && !is_behind_proxy;
        is_weak.then(|| {
            format!(
                "http.listen {address} can be reached from other machines without TLS: one on the way could read \
                 passwords, tokens and all answers; set http.tls_cert and http.tls_key, or put a proxy with TLS before \
                 it (http.public_url, http.trusted_proxies)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn faults_name_the_key_and_the_fix() {
        for (text, message) in [
            ("tls_cert = 'a'", "http.tls_cert is set and http.tls_key is not"),
            ("tls_key = 'a'", "http.tls_key is set and http.tls_cert is not"),
            ("tls_client_ca = 'a'", "http.tls_client_ca needs TLS"),
            ("probes_tls = true", "http.probes_tls needs"),
            (
                "tls_cert = 'a'\ntls_key = 'b'\ntls_client_crl = 'c'",
                "http.tls_client_crl needs http.tls_client_ca",
            ),
            ("tls_client_for = 'some'", "http.tls_client_for is \"some\"; write executors or all"),
            (
                "tls_cert = 'a'\ntls_key = 'b'\npublic_url = 'http://p.example'",
                "http.public_url begins with http://",
            ),
        ] {
            let error = Config::parse_text(&format!("[http]\n{text}\n")).expect_err(text);
            assert!(format!("{error:#}").contains(message), "{error:#}");
        }
        let error = Config::parse_text("[executors]\ntls_cert = 'a'\n").expect_err("no key");
        assert!(format!("{error:#}").contains("executors.tls_key belong together"), "{error:#}");
        let error =
            Config::parse_text("[executors]\ntls_ca = '/not/there'\n").expect_err("no file");
        assert!(format!("{error:#}").contains("executors.tls_ca /not/there: "), "{error:#}");
    }

    #[test]
    fn a_listener_in_clear_that_others_reach_is_warned_of() {
        let is_weak = |text: &str| {
            let config = Config::parse_text(&format!("[http]\n{text}\n")).expect(text);
            config.listener_weakness().is_some()
        };
        assert!(is_weak("listen = '0.0.0.0:8088'"));
        assert!(is_weak("listen = '10.0.0.1:8088'\npublic_url = 'https://p.example'"));
        for text in [
            "listen = '127.0.0.1:8088'",
            "listen = 'off'",
            "listen = '0.0.0.0:8088'\ntls_cert = 'a'\ntls_key = 'b'",
            "listen = '0.0.0.0:8088'\npublic_url = 'https://p.example'\ntrusted_proxies = ['10.0.0.2']",
        ] {
            assert!(!is_weak(text), "{text}");
        }
    }
}
