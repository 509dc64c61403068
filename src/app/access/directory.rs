//! Queries to a directory (LDAP, Active Directory): finds an account by name, checks its password,
//! whether it may log in, and its groups. TLS is verified, referrals are not followed.

use crate::config::{BadConfig, Ldap as Settings, LdapPassword};
use crate::domain::access::directory_account::{
    ACCOUNT_ATTRIBUTES, AccountClosed, DirectoryEntry, describe_bind_refusal, normalize_dn,
};
use crate::domain::time::Millis;
use crate::outbound::ClientTlsFiles;
use ldap3::{
    DerefAliases, Ldap, LdapConnAsync, LdapConnSettings, LdapError, LdapResult, Scope, SearchEntry,
    SearchOptions, StdStream, dn_escape, ldap_escape,
};
use rustls::ClientConfig;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;
use url::{Host, Url};

/// Maximum number of groups read per user.
const GROUPS_MAX: i32 = 2_000;

/// Result codes of RFC 4511 with a special meaning here.
mod code {
    pub(super) const SUCCESS: u32 = 0;
    pub(super) const SIZE_LIMIT: u32 = 4;
    pub(super) const REFERRAL: u32 = 10;
    pub(super) const NO_SUCH_OBJECT: u32 = 32;
    /// The account or the password is refused; any other code concerns the server.
    pub(super) const REFUSES_ACCOUNT: [u32; 7] = [19, 32, 34, 48, 49, 50, 53];
}

/// Why a directory does not authenticate a user. The messages are for administrators.
#[derive(Debug, thiserror::Error)]
pub(super) enum DirectoryError {
    /// It is unreachable, or not set up as in the settings.
    #[error("{0}")]
    Unavailable(String),
    /// It refuses, or returns no proof.
    #[error("{0}")]
    Refused(String),
}

type DirectoryResult<T> = std::result::Result<T, DirectoryError>;

fn unavailable(message: impl Into<String>) -> DirectoryError {
    DirectoryError::Unavailable(message.into())
}

fn refused(message: impl Into<String>) -> DirectoryError {
    DirectoryError::Refused(message.into())
}

/// An account of the directory.
#[derive(Clone, Debug)]
pub(super) struct DirectoryAccount {
    /// The identity that remains when the name or the position of the entry changes.
    pub(super) subject: String,
    /// The name there, from `name_attribute`.
    pub(super) name: String,
    pub(super) display_name: String,
    /// All attributes that were read.
    pub(super) entry: DirectoryEntry,
    /// DNs of the groups, in a normalised form for comparison.
    pub(super) groups: BTreeSet<String>,
}

/// A user of Procession, for queries about its directory account.
#[derive(Clone, Debug)]
pub(super) struct KnownAccount {
    /// Its name here.
    pub(super) name: String,
    /// Its identity there.
    pub(super) subject: String,
}

/// The present state of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AccountState {
    /// The user's sessions and tokens remain valid.
    Open,
    /// It may no longer log in, and why.
    Closed(String),
}

/// A directory as configured.
pub(super) struct Directory {
    settings: Settings,
    password: LdapPassword,
    tls_files: ClientTlsFiles,
    tls: Arc<ClientConfig>,
}

/// A server addressed by an IPv6 address. The library would verify its certificate for the name
/// `[::1]`, which is invalid, so it gets a connection that is open already, and a name that
/// replaces the address.
struct Ipv6Server {
    address: SocketAddr,
    /// The URL with that name.
    url: String,
}

/// A name that belongs to no one (RFC 2606).
const IPV6_NAME: &str = "ipv6.invalid";

impl Ipv6Server {
    fn of_url(url: &str) -> Option<Self> {
        let mut url = Url::parse(url).ok()?;
        let address = match Host::parse(url.host_str()?).ok()? {
            Host::Ipv6(address) => address,
            Host::Domain(_) | Host::Ipv4(_) => return None,
        };
        let port = url.port().unwrap_or(if url.scheme() == "ldaps" { 636 } else { 389 });
        url.set_host(Some(IPV6_NAME)).ok()?;
        Some(Self { address: SocketAddr::new(address.into(), port), url: url.into() })
    }
}

/// A connection; closed when this is dropped.
pub(super) struct DirectoryConnection {
    ldap: Ldap,
    _driver: AbortOnDropHandle<()>,
}

impl Directory {
    /// Reads the password and the certificate authorities.
    pub(super) fn open_directory(settings: &Settings) -> DirectoryResult<Self> {
        let cannot_connect = |error: BadConfig| unavailable(error.to_string());
        let password = settings.bind_password().map_err(cannot_connect)?;
        let tls_files = ClientTlsFiles::of_authorities("ldap.tls_ca", &settings.tls_ca);
        let tls = Arc::new(tls_files.config().map_err(unavailable)?);
        Ok(Self { settings: settings.clone(), password, tls_files, tls })
    }

    /// Proves that a user has this name and password and may log in. Servers are tried in turn
    /// until one answers; a refusal is an answer.
    pub(super) async fn authenticate(
        &self,
        name: &str,
        password: &SecretString,
        now: Millis,
    ) -> DirectoryResult<DirectoryAccount> {
        // A server treats a name with an empty password as an anonymous login, and accepts it (RFC
        // 4513, 5.1.2).
        if password.expose_secret().is_empty() {
            return Err(refused("empty password"));
        }
        let mut last = unavailable("ldap.urls is empty");
        for url in &self.settings.urls {
            let asked = self.authenticate_at(url, name, password, now);
            match tokio::time::timeout(self.settings.timeout(), asked).await {
                Ok(Err(DirectoryError::Unavailable(message))) => {
                    last = unavailable(format!("{url}: {message}"));
                }
                Ok(answer) => return answer,
                Err(_elapsed) => {
                    let seconds = self.settings.timeout_sec;
                    last = unavailable(format!("{url}: no answer within {seconds} s"));
                }
            }
            tracing::warn!("the directory cannot be asked: {last}");
        }
        Err(last)
    }

    async fn authenticate_at(
        &self,
        url: &str,
        name: &str,
        password: &SecretString,
        now: Millis,
    ) -> DirectoryResult<DirectoryAccount> {
        let mut reader = match self.settings.reads_as_user() {
            true => None,
            false => Some(self.connect_reader(url).await?),
        };
        let dn = match &mut reader {
            Some(reader) if self.settings.user_dn.is_empty() => self.find_dn(reader, name).await?,
            _ => self.made_dn(name),
        };
        // A separate connection: the reader's stays bound to the reader.
        let mut own = self.connect_user(url, &dn, password).await?;
        let reader = reader.as_mut().unwrap_or(&mut own);
        let account = self.read_account(reader, name, &dn).await?;
        match account.entry.closed_reason(now) {
            Some(reason) => Err(refused(reason.to_string())),
            None => Ok(account),
        }
    }

    /// The present states of these accounts, in order. The first server that answers for all of
    /// them counts.
    pub(super) async fn read_states(
        &self,
        accounts: &[KnownAccount],
        now: Millis,
    ) -> DirectoryResult<Vec<AccountState>> {
        let mut last = unavailable("ldap.urls is empty");
        for url in &self.settings.urls {
            match self.read_states_at(url, accounts, now).await {
                Ok(states) => return Ok(states),
                Err(error) => last = unavailable(format!("{url}: {error}")),
            }
        }
        Err(last)
    }

    async fn read_states_at(
        &self,
        url: &str,
        accounts: &[KnownAccount],
        now: Millis,
    ) -> DirectoryResult<Vec<AccountState>> {
        let late = |_| unavailable(format!("no answer within {} s", self.settings.timeout_sec));
        let limited = |work| tokio::time::timeout(self.settings.timeout(), work);
        let mut reader = limited(self.connect_checked_reader(url)).await.map_err(late)??;
        let mut states = Vec::with_capacity(accounts.len());
        for account in accounts {
            let state = self.read_state(&mut reader, account, now);
            let state = tokio::time::timeout(self.settings.timeout(), state).await;
            states.push(match state.map_err(late)? {
                Ok(state) => state,
                Err(DirectoryError::Refused(why)) => AccountState::Closed(why),
                Err(unavailable) => return Err(unavailable),
            });
        }
        Ok(states)
    }

    /// A reader connection that can see entries. A reader that has lost its privileges would find
    /// no account: that must not end everyone's sessions.
    async fn connect_checked_reader(&self, url: &str) -> DirectoryResult<DirectoryConnection> {
        let mut reader = self.connect_reader(url).await?;
        let own = &self.settings.bind_dn;
        let base = if self.settings.base.is_empty() { own } else { &self.settings.base };
        let found = reader.search(base, Scope::Base, "(objectClass=*)", &["1.1"], 1).await?;
        match found.entries.is_empty() {
            true => Err(unavailable(format!("{own} (ldap.bind_dn) is not shown {base}"))),
            false => Ok(reader),
        }
    }

    async fn read_state(
        &self,
        reader: &mut DirectoryConnection,
        account: &KnownAccount,
        now: Millis,
    ) -> DirectoryResult<AccountState> {
        let own = &self.settings.name_attribute;
        let wanted: Vec<&str> = ACCOUNT_ATTRIBUTES.into_iter().chain([own.as_str()]).collect();
        let filter = subject_filter(&account.subject).filter(|_| !self.settings.base.is_empty());
        let found = match &filter {
            Some(filter) => {
                reader.search(&self.settings.base, Scope::Subtree, filter, &wanted, 2).await?
            }
            None => {
                let dn = match self.settings.user_dn.is_empty() {
                    true => self.find_dn(reader, &account.name).await?,
                    false => self.made_dn(&account.name),
                };
                reader.search(&dn, Scope::Base, "(objectClass=*)", &wanted, 1).await?
            }
        };
        let same = |entry: &SearchEntry| subject_of(entry) == account.subject;
        let Some(read) = found.entries.into_iter().find(same) else {
            return Ok(AccountState::Closed("the account is not in the directory any more".into()));
        };
        let entry = entry_of(read);
        if let Some(reason) = entry.closed_reason(now).filter(AccountClosed::ends_access) {
            return Ok(AccountState::Closed(reason.to_string()));
        }
        if self.is_found_by_filter(reader, &entry).await? {
            return Ok(AccountState::Open);
        }
        Ok(AccountState::Closed("the account is not found by ldap.user_filter any more".into()))
    }

    /// Whether a login would still find the entry: many filters require a group.
    async fn is_found_by_filter(
        &self,
        reader: &mut DirectoryConnection,
        entry: &DirectoryEntry,
    ) -> DirectoryResult<bool> {
        let Some(name) = entry.first_value(&self.settings.name_attribute) else { return Ok(false) };
        if !self.settings.user_dn.is_empty() {
            return Ok(true);
        }
        let filter = self.settings.user_filter.replace("{name}", &ldap_escape(name));
        let found = reader.search(&entry.dn, Scope::Base, &filter, &["1.1"], 1).await?;
        Ok(!found.entries.is_empty())
    }

    /// Opens a connection, with TLS where the settings require it.
    pub(super) async fn connect(&self, url: &str) -> DirectoryResult<DirectoryConnection> {
        let settings = LdapConnSettings::new()
            .set_conn_timeout(self.settings.timeout())
            .set_config(self.tls.clone())
            .set_starttls(url.starts_with("ldap://") && self.settings.starts_tls());
        let opened = match Ipv6Server::of_url(url) {
            None => LdapConnAsync::with_settings(settings, url).await,
            Some(server) => {
                let stream = tokio::time::timeout(
                    self.settings.timeout(),
                    TcpStream::connect(server.address),
                );
                let stream = stream.await.unwrap_or_else(|late| Err(late.into()));
                let stream = stream.and_then(TcpStream::into_std);
                let stream = stream.map_err(|error| unavailable(error.to_string()))?;
                let tls = self.tls_files.config_for_address(server.address.ip());
                let settings = settings
                    .set_std_stream(StdStream::Tcp(stream))
                    .set_config(Arc::new(tls.map_err(unavailable)?));
                LdapConnAsync::with_settings(settings, &server.url).await
            }
        };
        let (connection, ldap) = opened.map_err(|error| unavailable(describe_error(&error)))?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.drive().await {
                tracing::debug!("a connection to the directory ended: {error}");
            }
        });
        Ok(DirectoryConnection { ldap, _driver: AbortOnDropHandle::new(driver) })
    }

    /// Opens a connection bound to the account that searches for users.
    pub(super) async fn connect_reader(&self, url: &str) -> DirectoryResult<DirectoryConnection> {
        let mut connection = self.connect(url).await?;
        let dn = self.settings.bind_dn.as_str();
        if dn.is_empty() {
            return Ok(connection);
        }
        let Some(password) = &self.password else {
            return Err(unavailable(
                "ldap.bind_dn has no password; put it into PROCESSION_LDAP_PASSWORD or ldap.bind_password_file",
            ));
        };
        let answer = connection.ldap.simple_bind(dn, password.expose_secret()).await;
        let answer = answer.map_err(|error| unavailable(describe_error(&error)))?;
        match answer.rc {
            code::SUCCESS => Ok(connection),
            _ => Err(unavailable(format!("{dn} (ldap.bind_dn) is not let in: {answer}"))),
        }
    }

    /// The DN built from the name.
    pub(super) fn made_dn(&self, name: &str) -> String {
        self.settings.user_dn.replace("{name}", &dn_escape(name))
    }

    /// The DN of the account with this name.
    pub(super) async fn find_dn(
        &self,
        reader: &mut DirectoryConnection,
        name: &str,
    ) -> DirectoryResult<String> {
        let filter = self.settings.user_filter.replace("{name}", &ldap_escape(name));
        let base = &self.settings.base;
        let found = reader.search(base, Scope::Subtree, &filter, &["1.1"], 2).await?;
        match (&found.entries[..], found.refers_elsewhere) {
            ([one], _) if !found.is_cut => Ok(one.dn.clone()),
            ([], true) => Err(refused(
                "no such user in the directory, which names other servers; those are not asked",
            )),
            ([], false) => Err(refused("no such user in the directory")),
            _ => Err(refused(format!(
                "several users are found with {filter}; make ldap.user_filter narrower"
            ))),
        }
    }

    /// Opens a connection bound to the user with this DN; refuses a wrong password.
    pub(super) async fn connect_user(
        &self,
        url: &str,
        dn: &str,
        password: &SecretString,
    ) -> DirectoryResult<DirectoryConnection> {
        if dn.is_empty() || password.expose_secret().is_empty() {
            return Err(refused("empty password"));
        }
        let mut own = self.connect(url).await?;
        let answer = own.ldap.simple_bind(dn, password.expose_secret()).await;
        let answer = answer.map_err(|error| unavailable(describe_error(&error)))?;
        match answer.rc {
            code::SUCCESS => Ok(own),
            code if code::REFUSES_ACCOUNT.contains(&code) => {
                Err(refused(describe_bind_refusal(code, &answer.text)))
            }
            _ => Err(unavailable(describe_result(&answer))),
        }
    }

    /// Reads the account of a DN.
    pub(super) async fn read_account(
        &self,
        reader: &mut DirectoryConnection,
        name: &str,
        dn: &str,
    ) -> DirectoryResult<DirectoryAccount> {
        let own = &self.settings.name_attribute;
        let wanted: Vec<&str> = ACCOUNT_ATTRIBUTES.into_iter().chain([own.as_str()]).collect();
        let found = reader.search(dn, Scope::Base, "(objectClass=*)", &wanted, 1).await?;
        let Some(read) = found.entries.into_iter().next() else {
            return Err(refused("the user's entry cannot be read"));
        };
        let subject = subject_of(&read);
        let entry = entry_of(read);
        let groups = self.read_groups(reader, name, &entry).await?;
        let shown = entry.first_value("displayName").or_else(|| entry.first_value("cn"));
        let name_here = entry
            .first_value(own)
            .map(str::to_owned)
            .ok_or_else(|| refused(format!("{dn} has no attribute {own} (ldap.name_attribute)")))?;
        let display_name = shown.unwrap_or(&name_here).to_owned();
        Ok(DirectoryAccount { subject, name: name_here, display_name, entry, groups })
    }

    async fn read_groups(
        &self,
        reader: &mut DirectoryConnection,
        name: &str,
        entry: &DirectoryEntry,
    ) -> DirectoryResult<BTreeSet<String>> {
        let mut groups: BTreeSet<String> =
            entry.values("memberOf").iter().filter_map(|dn| normalize_dn(dn)).collect();
        if self.settings.group_filter.is_empty() {
            return Ok(groups);
        }
        let filter = fill_filter(&self.settings.group_filter, name, &entry.dn);
        let base = &self.settings.group_base;
        let found = reader.search(base, Scope::Subtree, &filter, &["1.1"], GROUPS_MAX).await?;
        if found.is_cut {
            // A fault of this user alone: others may log in.
            return Err(refused(format!(
                "the user is in more groups than the directory lists; make ldap.group_filter narrower ({filter})"
            )));
        }
        groups.extend(found.entries.iter().filter_map(|group| normalize_dn(&group.dn)));
        Ok(groups)
    }
}

/// The result of a search.
struct DirectorySearchResult {
    entries: Vec<SearchEntry>,
    /// Whether there were more entries than requested.
    is_cut: bool,
    /// Whether the server returned referrals.
    refers_elsewhere: bool,
}

impl DirectoryConnection {
    async fn search(
        &mut self,
        base: &str,
        scope: Scope,
        filter: &str,
        attributes: &[&str],
        most: i32,
    ) -> DirectoryResult<DirectorySearchResult> {
        let options = SearchOptions::new().deref(DerefAliases::Never).sizelimit(most);
        let ldap = self.ldap.with_search_options(options);
        let found = ldap.search(base, scope, filter, attributes.to_vec()).await;
        let found = found.map_err(|error| unavailable(describe_error(&error)))?;
        let (entries, result) = (found.0, found.1);
        match result.rc {
            code::SUCCESS | code::SIZE_LIMIT => Ok(DirectorySearchResult {
                entries: entries.into_iter().map(SearchEntry::construct).collect(),
                is_cut: result.rc == code::SIZE_LIMIT,
                refers_elsewhere: !result.refs.is_empty(),
            }),
            code::NO_SUCH_OBJECT if scope == Scope::Base => Ok(DirectorySearchResult {
                entries: Vec::new(),
                is_cut: false,
                refers_elsewhere: false,
            }),
            _ => Err(unavailable(format!("search below {base:?}: {}", describe_result(&result)))),
        }
    }
}

/// A filter with the name and the DN inserted, each escaped (RFC 4515). Inserted text is not
/// expanded again.
fn fill_filter(filter: &str, name: &str, dn: &str) -> String {
    let (name, dn) = (ldap_escape(name), ldap_escape(dn));
    let parts: Vec<String> =
        filter.split("{dn}").map(|part| part.replace("{name}", &name)).collect();
    parts.join(&dn)
}

fn entry_of(read: SearchEntry) -> DirectoryEntry {
    let lower = |(name, values): (String, Vec<String>)| (name.to_ascii_lowercase(), values);
    let attributes: BTreeMap<_, _> = read.attrs.into_iter().map(lower).collect();
    DirectoryEntry { dn: read.dn, attributes }
}

/// The permanent identity of an account: the id that its directory assigned, else its DN.
fn subject_of(read: &SearchEntry) -> String {
    let binary = find_attribute(&read.bin_attrs, "objectGUID").and_then(|all| all.first());
    // The library returns sixteen bytes that are valid text as text.
    let textual =
        find_attribute(&read.attrs, "objectGUID").and_then(|all| all.first()).map(String::as_bytes);
    if let Some(bytes) = binary.map(Vec::as_slice).or(textual) {
        return bytes.iter().fold("guid:".to_owned(), |mut text, byte| {
            let _never_fails = write!(text, "{byte:02x}");
            text
        });
    }
    if let Some(uuid) = find_attribute(&read.attrs, "entryUUID").and_then(|all| all.first()) {
        return format!("uuid:{}", uuid.to_ascii_lowercase());
    }
    let dn = normalize_dn(&read.dn).unwrap_or_else(|| read.dn.clone());
    format!("dn:{}", super::secret::digest(&dn))
}

/// The filter that finds an account by its id; `None` for one that is known only by its DN.
fn subject_filter(subject: &str) -> Option<String> {
    if let Some(uuid) = subject.strip_prefix("uuid:") {
        return Some(format!("(entryUUID={})", ldap_escape(uuid)));
    }
    let hex = subject.strip_prefix("guid:")?;
    let bytes = hex.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    let escaped: String = bytes.map(|pair| format!("\\{pair}")).collect();
    Some(format!("(objectGUID={escaped})"))
}

fn find_attribute<'a, V>(attributes: &'a HashMap<String, V>, name: &str) -> Option<&'a V> {
    attributes.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, values)| values)
}

fn describe_result(result: &LdapResult) -> String {
    let hint = match result.rc {
        code::REFERRAL => {
            "; it refers to another server, which is not followed: name that server in ldap.urls"
        }
        2 => "; a server without StartTLS answers so: use ldaps://",
        1 | 8 | 50 => "; name a user who may search in ldap.bind_dn",
        13 => "; the server asks for TLS: use ldaps:// or ldap.tls = \"starttls\"",
        code::NO_SUCH_OBJECT => "; there is no such DN, see ldap.base and ldap.group_base",
        _ => "",
    };
    format!("{result}{hint}")
}

fn describe_error(error: &LdapError) -> String {
    let message = match error {
        LdapError::Io { source } => source.to_string(),
        LdapError::Timeout { .. } => "no answer in time".to_owned(),
        LdapError::LdapResult { result } => describe_result(result),
        other => other.to_string(),
    };
    match message.contains("certificate") {
        true => {
            format!(
                "{message}; name the authority that made the server's certificate in ldap.tls_ca"
            )
        }
        false => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_a_filter_is_escaped_and_not_looked_at_again() {
        let filter = "(&(objectClass=groupOfNames)(|(member={dn})(memberUid={name})))";
        assert_eq!(
            fill_filter(filter, "a*)(uid=*", "cn={name},dc=x"),
            "(&(objectClass=groupOfNames)(|(member=cn={name},dc=x)(memberUid=a\\2a\\29\\28uid=\\2a)))"
        );
    }
}
