//! A real directory: Debian's slapd, as a process of the test on ports of its own. scripts/test-ldap.sh installs it.

use crate::util::port::free_port;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What `reader` and the administrator of the directory log in with.
pub(super) const READER_PASSWORD: &str = "reader-secret";
const ROOT: &str = "cn=root,dc=bank,dc=example";

/// Users have the password `NAME-secret`.
const ENTRIES: &str = "
dn: dc=bank,dc=example
objectClass: domain
dc: bank

dn: ou=people,dc=bank,dc=example
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=bank,dc=example
objectClass: organizationalUnit
ou: groups

dn: uid=reader,dc=bank,dc=example
objectClass: account
objectClass: simpleSecurityObject
uid: reader
userPassword: reader-secret

dn: uid=ada,ou=people,dc=bank,dc=example
objectClass: inetOrgPerson
uid: ada
cn: Ada Lovelace
sn: Lovelace
mail: ada@bank.example
userPassword: ada-secret
memberOf: CN=Chiefs, OU=Groups, DC=Bank, DC=Example

dn: uid=barbara,ou=people,dc=bank,dc=example
objectClass: inetOrgPerson
uid: barbara
cn: Barbara
sn: Liskov
userPassword: barbara-secret

dn: uid=grace,ou=people,dc=bank,dc=example
objectClass: inetOrgPerson
objectClass: adAccount
uid: grace
cn: Grace
sn: Hopper
userPassword: grace-secret
userAccountControl: 514

dn: uid=linus,ou=people,dc=bank,dc=example
objectClass: inetOrgPerson
objectClass: shadowAccount
uid: linus
cn: Linus
sn: T
userPassword: linus-secret
shadowExpire: 19900

dn: cn=Finance\\, Operators,ou=groups,dc=bank,dc=example
objectClass: groupOfNames
cn: Finance, Operators
member: uid=ada,ou=people,dc=bank,dc=example
member: uid=grace,ou=people,dc=bank,dc=example
member: uid=linus,ou=people,dc=bank,dc=example

dn: ou=elsewhere,dc=bank,dc=example
objectClass: referral
objectClass: extensibleObject
ou: elsewhere
ref: ldap://127.0.0.1:REFERRAL/ou=people,dc=other,dc=example
";

const CONFIG: &str = "
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.2.840.113556.1.4.8 NAME 'userAccountControl' SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
objectclass ( 1.3.6.1.4.1.99999.1 NAME 'adAccount' SUP top AUXILIARY MAY ( userAccountControl ) )
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
# What makes an empty password dangerous: the server takes it and says yes.
allow bind_anon_cred
pidfile FOLDER/slapd.pid
TLSCertificateFile FOLDER/server.pem
TLSCertificateKeyFile FOLDER/server.key
database mdb
directory FOLDER/data
suffix dc=bank,dc=example
rootdn ROOT
rootpw root-secret
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact=uid=reader,dc=bank,dc=example read by self read by anonymous auth by * none
";

/// A directory that runs until this is dropped.
pub(super) struct Slapd {
    process: Option<Child>,
    folder: tempfile::TempDir,
    pub(super) port: u16,
    pub(super) tls_port: u16,
}

fn program() -> PathBuf {
    let usual = Path::new("/usr/sbin/slapd");
    assert!(usual.exists(), "there is no directory server to test with; run scripts/test-ldap.sh");
    usual.to_owned()
}

impl Slapd {
    pub(super) fn start() -> Self {
        Self::with_referral(1)
    }

    /// With an entry that refers to this port.
    pub(super) fn with_referral(referral_port: u16) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        certificates(folder.path());
        std::fs::create_dir(folder.path().join("data")).expect("a folder");
        let path = folder.path().display().to_string();
        let config = CONFIG.replace("FOLDER", &path).replace("ROOT", ROOT);
        std::fs::write(folder.path().join("slapd.conf"), config).expect("settings");
        let entries = ENTRIES.replace("REFERRAL", &referral_port.to_string());
        std::fs::write(folder.path().join("entries.ldif"), entries).expect("entries");
        let loaded = Command::new(program())
            .args(["-T", "add", "-f"])
            .arg(folder.path().join("slapd.conf"))
            .arg("-l")
            .arg(folder.path().join("entries.ldif"))
            .output()
            .expect("slapadd runs");
        assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        let (port, tls_port) = (free_port(), free_port());
        let mut slapd = Self { process: None, folder, port, tls_port };
        slapd.run();
        slapd
    }

    /// Starts the server on its ports.
    pub(super) fn run(&mut self) {
        let urls = format!(
            "ldap://127.0.0.1:{} ldaps://127.0.0.1:{} ldaps://[::1]:{}",
            self.port, self.tls_port, self.tls_port
        );
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log");
        let process = Command::new(program())
            .args(["-d", "0", "-h", &urls, "-f"])
            .arg(self.folder.path().join("slapd.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("slapd runs");
        self.process = Some(process);
        for _ in 0..200 {
            let answers = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
            if answers(self.port) && answers(self.tls_port) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        panic!("slapd does not answer: {log}");
    }

    pub(super) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Changes the directory as its administrator.
    pub(super) fn modify(&self, ldif: &str) {
        let mut process = Command::new("ldapmodify")
            .args(["-x", "-H", &self.plain_url(), "-D", ROOT, "-w", "root-secret"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ldapmodify runs (scripts/test-ldap.sh installs it)");
        let mut stdin = process.stdin.take().expect("a pipe");
        stdin.write_all(ldif.as_bytes()).expect("written");
        drop(stdin);
        let done = process.wait_with_output().expect("it ends");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    pub(super) fn plain_url(&self) -> String {
        format!("ldap://127.0.0.1:{}", self.port)
    }

    pub(super) fn tls_url(&self) -> String {
        format!("ldaps://127.0.0.1:{}", self.tls_port)
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Settings for this directory over `ldaps`, with what a test adds to `[ldap]`.
    pub(super) fn settings(&self, more: &str) -> String {
        self.settings_at(&self.tls_url(), &format!("tls_ca = '{}'\n{more}", self.path("ca.pem")))
    }

    /// Settings for this directory at a URL.
    pub(super) fn settings_at(&self, url: &str, more: &str) -> String {
        let password = self.path("reader.password");
        std::fs::write(&password, READER_PASSWORD).expect("a password file");
        format!(
            "[http]\ntrusted_proxies = ['127.0.0.1']\n[ldap]\nurls = ['{url}']\nname = 'Corporate'\n\
             bind_dn = 'uid=reader,dc=bank,dc=example'\nbind_password_file = '{password}'\n\
             base = 'ou=people,dc=bank,dc=example'\ngroup_base = 'ou=groups,dc=bank,dc=example'\n\
             group_filter = '(member={{dn}})'\n{more}\n\
             [[ldap.grants]]\nldap_group = 'cn=finance\\2c operators,ou=groups,dc=bank,dc=example'\n\
             group = 'gl'\nrole = 'operator'\nrights = ['force']\n\
             [[ldap.grants]]\nldap_group = 'cn=chiefs,ou=groups,dc=bank,dc=example'\n\
             group = 'ar'\nrole = 'viewer'\n"
        )
    }
}

impl Drop for Slapd {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A certificate for this machine's addresses of one authority, and another authority that made none.
fn certificates(folder: &Path) {
    let authority = || {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        (pem, Issuer::new(params, key))
    };
    let ((ca_pem, issuer), (other_pem, _)) = (authority(), authority());
    let key = KeyPair::generate().expect("a key");
    let names = vec!["127.0.0.1".to_owned(), "::1".to_owned()];
    let params = CertificateParams::new(names).expect("a name");
    let pem = params.signed_by(&key, &issuer).expect("a certificate").pem();
    for (name, text) in [
        ("ca.pem", ca_pem),
        ("other-ca.pem", other_pem),
        ("server.pem", pem),
        ("server.key", key.serialize_pem()),
    ] {
        std::fs::write(folder.join(name), text).expect("written");
    }
}
