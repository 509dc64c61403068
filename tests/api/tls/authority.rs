//! An authority, and certificates of it for this machine.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevocationReason, RevokedCertParams, SerialNumber,
};
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
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
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
        self.issue_with(folder, name, |_| ())
    }

    /// A list that revokes the certificates with these serial numbers, as NAME.pem.
    pub(super) fn revoke(&self, folder: &Path, name: &str, serials: &[u64]) {
        let now = rcgen::date_time_ymd(2024, 1, 1);
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: now,
            reason_code: Some(RevocationReason::KeyCompromise),
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: now,
            next_update: rcgen::date_time_ymd(2099, 1, 1),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let pem = list.signed_by(&self.issuer).expect("a list").pem().expect("its text");
        std::fs::write(folder.join(format!("{name}.pem")), pem).expect("written");
    }

    /// The same, changed before it is signed.
    pub(super) fn issue_with(
        &self,
        folder: &Path,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> String {
        let key = KeyPair::generate().expect("a key");
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let pem = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        std::fs::write(folder.join(format!("{name}.pem")), &pem).expect("written");
        let file = folder.join(format!("{name}.key"));
        std::fs::write(&file, key.serialize_pem()).expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("mode");
        pem
    }
}
