//! An authority, and certificates of it for this machine.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

pub(super) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL takes two certificates of one name for one that signed itself.
        params.distinguished_name.push(DnType::CommonName, "an authority");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Its own certificate, as NAME.pem.
    pub(super) fn write(&self, folder: &Path, name: &str) {
        std::fs::write(folder.join(format!("{name}.pem")), &self.pem).expect("written");
    }

    /// A certificate for this machine as NAME.pem, and its key as NAME.key; gives what it is known by.
    pub(super) fn issue(&self, folder: &Path, name: &str) -> String {
        let key = KeyPair::generate().expect("a key");
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        std::fs::write(folder.join(format!("{name}.pem")), &pem).expect("written");
        let file = folder.join(format!("{name}.key"));
        std::fs::write(&file, key.serialize_pem()).expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("mode");
        pem
    }
}
