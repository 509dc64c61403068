//! Secrets from where an installation keeps them: folders and Vault, and the key of those that are sealed.

mod folder;
mod openbao;
mod passwords;
mod rekey;
mod scripted_vault;

use procession::domain::access::group_access::GroupAccess;
use procession::domain::cluster::lease::Uptime;
use procession::secret_store::vault::{CredentialSource, VaultAuth, VaultOptions};
use procession::secret_store::{
    ReadSecret, SecretEntry, SecretStoreError, SecretStores, StoreBackend, StoreOptions,
};
use secrecy::ExposeSecret as _;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The settings of a server in which nothing is special; the secret id stands in a file of the folder.
fn vault_options(address: &str, folder: &Path) -> VaultOptions {
    VaultOptions {
        address: address.parse().expect("a URL"),
        namespace: None,
        mount: "secret".to_owned(),
        auth: VaultAuth::AppRole {
            mount: "approle".to_owned(),
            role_id: CredentialSource::Text("the-role".to_owned()),
            secret_id: CredentialSource::File(folder.join("secret-id")),
        },
        tls_ca: None,
        timeout: Duration::from_secs(5),
    }
}

/// A store `corp` with a secret `PW` at this key.
fn stores(options: VaultOptions, key: &str) -> SecretStores {
    let entry = SecretEntry {
        key: key.to_owned(),
        access: GroupAccess::default(),
        sources: Vec::new(),
        for_procession: false,
    };
    SecretStores::new(vec![StoreOptions {
        name: "corp".to_owned(),
        backend: StoreBackend::Vault(Box::new(options)),
        secrets: BTreeMap::from([("PW".to_owned(), entry)]),
    }])
}

/// Reads `PW` at a moment, in seconds.
async fn read(stores: &SecretStores, second: i64) -> Result<ReadSecret, SecretStoreError> {
    stores.read_secret(stores.find_secret("PW").expect("PW"), Uptime(second * 1_000)).await
}

async fn value(stores: &SecretStores, second: i64) -> String {
    read(stores, second).await.expect("a secret").value.expose_secret().to_owned()
}

/// Why there is none, with whether it may be there in a moment.
async fn refusal(stores: &SecretStores, second: i64) -> (bool, String) {
    match read(stores, second).await.expect_err("no secret") {
        SecretStoreError::Away(why) => (true, why),
        SecretStoreError::Unusable(why) => (false, why),
    }
}

/// Writes a file that nobody else may read.
fn write_private(path: &PathBuf, text: &str) {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new();
    let file = file.create(true).write(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).expect("a file");
}
