//! Certificates and keys in PEM files: read, with faults that name setting, file and fix; and a
//! client that reloads them when they change.

use super::address_verifier::tls_to_address;
use super::{TransportProtection, built, client_of, machine_roots, tls_builder};
use reqwest::{Client, ClientBuilder};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fs::Metadata;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A file, and the setting that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The name of the setting: `http.tls_cert`.
    pub setting: &'static str,
    pub path: PathBuf,
}

impl NamedFile {
    /// The file of a setting; `None` when the setting is empty.
    pub fn from_setting(setting: &'static str, path: &std::path::Path) -> Option<Self> {
        (!path.as_os_str().is_empty()).then(|| Self { setting, path: path.to_owned() })
    }

    /// An error message about the file.
    pub fn fault(&self, what: impl std::fmt::Display) -> String {
        format!("{} {}: {what}", self.setting, self.path.display())
    }

    /// The content of the file.
    pub fn read_bytes(&self) -> Result<Vec<u8>, String> {
        std::fs::read(&self.path).map_err(|error| {
            self.fault(format!("{error}; name a PEM file that this process may read"))
        })
    }

    /// The certificates in it, at least one.
    pub fn certificates(&self, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let found = found.map_err(|error| self.fault(format!("it is no PEM file: {error}")))?;
        match found.is_empty() {
            true => Err(self.fault(
                "it holds no certificate in PEM form (-----BEGIN CERTIFICATE-----); \
                 openssl x509 -inform der -in FILE makes one of a DER file",
            )),
            false => Ok(found),
        }
    }

    /// The private key in it.
    pub fn private_key(&self, pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
        const ENCRYPTED: [&[u8]; 2] = [b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];
        if ENCRYPTED.iter().any(|mark| pem.windows(mark.len()).any(|part| part == *mark)) {
            return Err(self.fault(
                "the key has a passphrase, which nobody could type when this process starts; write it without one \
                 (openssl pkey -in FILE -out KEY) to a file of mode 0600",
            ));
        }
        PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
            PemError::NoItemsFound => self.fault(
                "it holds no private key in PEM form (-----BEGIN PRIVATE KEY-----); it is not the file of the \
                 certificate",
            ),
            other => self.fault(format!("it is no PEM file: {other}")),
        })
    }

    /// The revocation lists in it, at least one.
    pub fn revocation_lists(
        &self,
        pem: &[u8],
    ) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
        let found: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(pem).collect();
        let found = found.map_err(|error| self.fault(format!("it is no PEM file: {error}")))?;
        match found.is_empty() {
            true => Err(self.fault(
                "it holds no revocation list in PEM form (-----BEGIN X509 CRL-----); openssl crl -inform der -in \
                 FILE makes one of a DER file",
            )),
            false => Ok(found),
        }
    }

    /// The subjects and expiry times of its certificates, in seconds since 1970.
    pub fn certificate_ends(&self, pem: &[u8]) -> Result<Vec<(String, i64)>, String> {
        let end = |der: &CertificateDer<'_>| {
            let (_, found) = x509_parser::parse_x509_certificate(der)
                .map_err(|error| self.fault(format!("a certificate cannot be read: {error}")))?;
            Ok((found.subject().to_string(), found.validity().not_after.timestamp()))
        };
        self.certificates(pem)?.iter().map(end).collect()
    }

    /// The issuers of its revocation lists, and when the next one is due, in seconds since 1970.
    /// Lists without that are omitted.
    pub fn list_ends(&self, pem: &[u8]) -> Result<Vec<(String, i64)>, String> {
        let mut ends = Vec::new();
        for der in self.revocation_lists(pem)? {
            let (_, found) = x509_parser::parse_x509_crl(&der).map_err(|error| {
                self.fault(format!("a revocation list cannot be read: {error}"))
            })?;
            let issuer = found.issuer().to_string();
            ends.extend(found.next_update().map(|end| (issuer, end.timestamp())));
        }
        Ok(ends)
    }

    /// The authorities in it, at least one.
    pub fn authorities(&self, pem: &[u8]) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates(pem)? {
            roots
                .add(certificate)
                .map_err(|error| self.fault(format!("a certificate is not usable: {error}")))?;
        }
        Ok(roots)
    }
}

/// The TLS settings for a server, besides its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// The authorities for the server's certificate; `None`: those of the machine.
    pub authorities: Option<NamedFile>,
    /// The client certificate and its key, for servers that require one.
    pub identity: Option<(NamedFile, NamedFile)>,
}

impl ClientTlsFiles {
    fn all_files(&self) -> impl Iterator<Item = &NamedFile> {
        let identity = self.identity.iter().flat_map(|(cert, key)| [cert, key]);
        self.authorities.iter().chain(identity)
    }

    /// Only the authorities of a file; those of the machine when the setting is empty.
    pub fn of_authorities(setting: &'static str, path: &std::path::Path) -> Self {
        Self { authorities: NamedFile::from_setting(setting, path), identity: None }
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        match &self.authorities {
            Some(file) => file.authorities(&file.read_bytes()?),
            None => machine_roots(),
        }
    }

    /// The TLS configuration for a server whose certificate must be for this address, for a library
    /// that accepts only names.
    pub fn config_for_address(&self, address: IpAddr) -> Result<ClientConfig, String> {
        tls_to_address(self.roots()?, address)
    }

    /// The TLS configuration.
    pub fn config(&self) -> Result<ClientConfig, String> {
        let config = tls_builder(self.roots()?)?;
        let Some((cert, key)) = &self.identity else { return Ok(config.with_no_client_auth()) };
        let chain = cert.certificates(&cert.read_bytes()?)?;
        let private = key.private_key(&key.read_bytes()?)?;
        config.with_client_auth_cert(chain, private).map_err(|error| unfit_key(cert, key, &error))
    }

    /// The metadata of the files, without reading them; changes when one is replaced or written.
    fn fingerprint(&self) -> Vec<Option<(u64, i64, i64, u64)>> {
        let of = |data: Metadata| (data.ino(), data.mtime(), data.mtime_nsec(), data.size());
        self.all_files().map(|file| std::fs::metadata(&file.path).ok().map(of)).collect()
    }
}

/// The error that a key and a certificate do not match, or cannot be used.
pub fn unfit_key(cert: &NamedFile, key: &NamedFile, error: &rustls::Error) -> String {
    key.fault(match error {
        rustls::Error::InconsistentKeys(_) => format!(
            "it is not the key of the first certificate in {}; the certificate of this server stands first there, \
             and those of its authorities follow",
            cert.path.display()
        ),
        other => format!(
            "it cannot be used with the certificate in {}: {other}; use RSA of 2048 bits or more, ECDSA (P-256, \
             P-384) or Ed25519",
            cert.path.display()
        ),
    })
}

/// What a caller adds to a client.
type Finish = Box<dyn Fn(ClientBuilder) -> ClientBuilder + Send + Sync>;

/// A client whose certificates are reloaded when their files change.
pub struct ReloadedClient {
    way: TransportProtection,
    files: ClientTlsFiles,
    finish: Finish,
    made: Mutex<Option<LoadedTls>>,
}

struct LoadedTls {
    fingerprint: Vec<Option<(u64, i64, i64, u64)>>,
    client: Client,
}

impl ReloadedClient {
    /// A client with TLS. `finish` adds the caller's settings, such as time limits.
    pub fn new(
        files: ClientTlsFiles,
        finish: impl Fn(ClientBuilder) -> ClientBuilder + Send + Sync + 'static,
    ) -> Self {
        Self::for_way(TransportProtection::Tls, files, finish)
    }

    /// The same for a connection that may be without TLS, for which no file is read.
    pub fn for_way(
        way: TransportProtection,
        files: ClientTlsFiles,
        finish: impl Fn(ClientBuilder) -> ClientBuilder + Send + Sync + 'static,
    ) -> Self {
        Self { way, files, finish: Box::new(finish), made: Mutex::default() }
    }

    /// The client. When files have changed and cannot be used, the previous client is returned, and
    /// the reason is logged.
    pub fn get(&self) -> Result<Client, String> {
        let fingerprint = self.files.fingerprint();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = made.as_ref().filter(|last| last.fingerprint == fingerprint) {
            return Ok(last.client.clone());
        }
        let client = match (self.build(), made.as_ref()) {
            (Ok(client), _) => client,
            (Err(fault), None) => return Err(fault),
            (Err(fault), Some(last)) => {
                tracing::error!("the certificates of before are used: {fault}");
                last.client.clone()
            }
        };
        *made = Some(LoadedTls { fingerprint, client: client.clone() });
        Ok(client)
    }

    fn build(&self) -> Result<Client, String> {
        built((self.finish)(client_with(self.way, &self.files)?))
    }
}

/// A client for a connection, with these files if it uses TLS.
pub fn client_with(
    way: TransportProtection,
    files: &ClientTlsFiles,
) -> Result<ClientBuilder, String> {
    match way {
        TransportProtection::Tls => Ok(client_of(files.config()?)),
        TransportProtection::Clear => super::client(way),
    }
}
