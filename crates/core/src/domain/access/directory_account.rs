//! Interprets the entry of an account in a directory (LDAP, Active Directory): whether it may log
//! in, and its groups.

use crate::domain::time::Millis;
use std::collections::BTreeMap;

/// The attributes that are read, and those that mark an account as closed.
pub const ACCOUNT_ATTRIBUTES: [&str; 12] = [
    "objectGUID",
    "entryUUID",
    "displayName",
    "cn",
    "memberOf",
    "userAccountControl",
    "accountExpires",
    "shadowExpire",
    "pwdAccountLockedTime",
    "nsAccountLock",
    "loginDisabled",
    "pwdReset",
];

/// An entry of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its distinguished name.
    pub dn: String,
    /// Values by attribute. Attribute names are in lower case, because servers differ in their
    /// spelling.
    pub attributes: BTreeMap<String, Vec<String>>,
}

/// Why an account may not log in although its password is right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountClosed {
    /// Disabled by an administrator.
    #[error("the account is disabled in the directory ({0})")]
    Disabled(&'static str),
    /// The account has expired.
    #[error("the account has expired in the directory ({0})")]
    Expired(&'static str),
    /// Locked after wrong passwords, or by an administrator.
    #[error("the account is locked in the directory ({0})")]
    Locked(&'static str),
    /// The password must be changed in the directory.
    #[error("the password must be changed in the directory first ({0})")]
    PasswordReset(&'static str),
}

impl AccountClosed {
    /// Whether existing sessions and tokens end as well. A lock after wrong passwords does not end
    /// them: a stranger can cause one.
    pub fn ends_access(&self) -> bool {
        matches!(self, Self::Disabled(_) | Self::Expired(_))
    }
}

/// Bit of `userAccountControl` that disables an account (ADS_UF_ACCOUNTDISABLE).
const AD_DISABLED: i64 = 0x2;
/// Milliseconds between 1601, where Active Directory begins to count, and 1970.
const AD_EPOCH_MS: i64 = 11_644_473_600_000;
const DAY_MS: i64 = 86_400_000;

impl DirectoryEntry {
    /// Values of an attribute.
    pub fn values(&self, attribute: &str) -> &[String] {
        self.attributes.get(&attribute.to_ascii_lowercase()).map_or(&[], Vec::as_slice)
    }

    /// First value of an attribute.
    pub fn first_value(&self, attribute: &str) -> Option<&str> {
        self.values(attribute).first().map(String::as_str)
    }

    /// Why the account may not log in, if an attribute says so. Servers that refuse such an account
    /// themselves do so earlier.
    pub fn closed_reason(&self, now: Millis) -> Option<AccountClosed> {
        let number = |attribute| self.first_value(attribute)?.trim().parse::<i64>().ok();
        let is_true = |attribute| {
            self.first_value(attribute).is_some_and(|value| value.eq_ignore_ascii_case("true"))
        };
        if number("userAccountControl").is_some_and(|flags| flags & AD_DISABLED != 0) {
            return Some(AccountClosed::Disabled("userAccountControl"));
        }
        if is_true("nsAccountLock") {
            return Some(AccountClosed::Disabled("nsAccountLock"));
        }
        if is_true("loginDisabled") {
            return Some(AccountClosed::Disabled("loginDisabled"));
        }
        if self.first_value("pwdAccountLockedTime").is_some() {
            return Some(AccountClosed::Locked("pwdAccountLockedTime"));
        }
        if is_true("pwdReset") {
            return Some(AccountClosed::PasswordReset("pwdReset"));
        }
        // 0 and the largest number mean "never"; counted in 100 ns.
        let ad_expiry = number("accountExpires").filter(|ticks| (1..i64::MAX).contains(ticks));
        if ad_expiry.is_some_and(|ticks| now.0 >= ticks / 10_000 - AD_EPOCH_MS) {
            return Some(AccountClosed::Expired("accountExpires"));
        }
        // Days since 1970; -1 means "never".
        let shadow_expiry = number("shadowExpire").filter(|days| *days >= 0);
        if shadow_expiry.is_some_and(|days| now.0.div_euclid(DAY_MS) >= days) {
            return Some(AccountClosed::Expired("shadowExpire"));
        }
        None
    }
}

/// Why a directory refused a password, as far as its answer says: Active Directory puts the reason
/// in its text (`data 533`).
pub fn describe_bind_refusal(code: u32, text: &str) -> String {
    let reason = text.split_once("data ").and_then(|(_, rest)| rest.split([',', ' ']).next());
    let said = match (code, reason) {
        (_, Some("525")) => "the directory has no such user",
        (_, Some("530" | "531")) => {
            "the directory does not let the user in at this time or from here"
        }
        (_, Some("532")) => "the password has expired in the directory",
        (_, Some("533")) => "the account is disabled in the directory",
        (_, Some("701")) => "the account has expired in the directory",
        (_, Some("773")) => "the password must be changed in the directory first",
        (_, Some("775")) => "the account is locked in the directory",
        (19 | 50 | 53, _) => "the directory refuses the account",
        _ => "wrong password",
    };
    said.to_owned()
}

/// Normalizes a distinguished name for comparison: lower case, no spaces around its parts. `None`
/// when it is malformed.
pub fn normalize_dn(dn: &str) -> Option<String> {
    let parts = split_unescaped(dn);
    let normalize = |part: &String| {
        let (attribute, value) = part.split_once('=')?;
        let (attribute, value) = (attribute.trim(), unescape(value.trim())?);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let fits = !attribute.is_empty() && attribute.chars().all(is_name) && !value.is_empty();
        // Escaped uniformly, so that a comma within a value is no separator.
        let escaped: String = value.to_lowercase().chars().map(escape).collect();
        fits.then(|| format!("{}={escaped}", attribute.to_ascii_lowercase()))
    };
    let all: Option<Vec<String>> = parts.iter().map(normalize).collect();
    Some(all?.join(","))
}

fn escape(c: char) -> String {
    match c {
        ',' | '+' | '\\' => format!("\\{c}"),
        _ => c.to_string(),
    }
}

/// Splits at unescaped commas.
fn split_unescaped(dn: &str) -> Vec<String> {
    let (mut parts, mut part, mut is_escaped) = (Vec::new(), String::new(), false);
    for c in dn.chars() {
        match c {
            ',' if !is_escaped => parts.push(std::mem::take(&mut part)),
            _ => part.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    parts.push(part);
    parts
}

/// Removes escapes: `\2C` and `\,` are a comma.
fn unescape(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'\\' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*after.first()?);
                rest = &after[1..];
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(attribute: &str, value: &str) -> DirectoryEntry {
        let attributes = BTreeMap::from([(attribute.to_lowercase(), vec![value.to_owned()])]);
        DirectoryEntry { dn: "uid=ada,dc=x".to_owned(), attributes }
    }

    #[test]
    fn accounts_that_are_closed() {
        // 2024-08-01T00:00:00Z is day 19,936.
        let now = Millis(1_722_470_400_000);
        for (attribute, value, said) in [
            ("userAccountControl", "514", "disabled"),
            ("userAccountControl", "66050", "disabled"),
            ("nsAccountLock", "TRUE", "disabled"),
            ("loginDisabled", "true", "disabled"),
            ("pwdAccountLockedTime", "000001010000Z", "locked"),
            ("pwdReset", "TRUE", "must be changed"),
            ("accountExpires", "133669440000000000", "expired"),
            ("shadowExpire", "19936", "expired"),
            ("shadowExpire", "0", "expired"),
        ] {
            let found = entry(attribute, value).closed_reason(now).expect(value).to_string();
            assert!(found.contains(said) && found.contains(attribute), "{found}");
        }
        for (attribute, value) in [
            ("userAccountControl", "512"),
            ("userAccountControl", "66048"),
            ("nsAccountLock", "FALSE"),
            ("accountExpires", "0"),
            ("accountExpires", "9223372036854775807"),
            ("accountExpires", "133669440000010000"),
            ("shadowExpire", "-1"),
            ("shadowExpire", "19937"),
            ("cn", "Ada"),
        ] {
            assert_eq!(entry(attribute, value).closed_reason(now), None, "{attribute} {value}");
        }
    }

    #[test]
    fn active_directory_tells_why() {
        let text = "80090308: LdapErr: DSID-0C09044E, comment: AcceptSecurityContext error, data 533, v2580";
        assert_eq!(describe_bind_refusal(49, text), "the account is disabled in the directory");
        assert_eq!(describe_bind_refusal(49, &text.replace("533", "52e")), "wrong password");
        assert_eq!(describe_bind_refusal(49, ""), "wrong password");
        assert_eq!(describe_bind_refusal(53, ""), "the directory refuses the account");
    }

    #[test]
    fn distinguished_names_are_compared_in_one_form() {
        let one = normalize_dn("CN=Month End,OU=Groups, DC=Bank , dc=example").expect("a DN");
        assert_eq!(one, "cn=month end,ou=groups,dc=bank,dc=example");
        assert_eq!(normalize_dn("cn=a\\, b,dc=x"), normalize_dn("CN=a\\2C B,DC=X"));
        assert_eq!(normalize_dn("cn=a\\,dc=y,dc=x").as_deref(), Some("cn=a\\,dc=y,dc=x"));
        assert_ne!(normalize_dn("cn=a\\,dc=y,dc=x"), normalize_dn("cn=a,dc=y,dc=x"));
        assert_eq!(normalize_dn("cn=李娜,dc=x").as_deref(), Some("cn=李娜,dc=x"));
        for odd in ["", "finance", "cn=,dc=x", "cn=a,,dc=x", "=a", "cn=a\\"] {
            assert_eq!(normalize_dn(odd), None, "{odd}");
        }
    }
}
