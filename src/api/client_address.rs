//! The origin of a request: its address, with or without TLS, from our own page or a foreign one.

use crate::api::connection_limit::Peer;
use crate::api::problem::Problem;
use crate::api::tls::ConnectionSecurity;
use crate::app::access::Stranger;
use crate::config::Doorway;
use axum::extract::ConnectInfo;
use axum::http::header::{COOKIE, HOST, ORIGIN, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use std::net::IpAddr;

/// The origin of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestOrigin {
    /// The client address.
    pub address: String,
    /// Whether the browser uses TLS.
    pub transport: TransportSecurity,
    /// Scheme, host and port as the browser sees them.
    origin: Option<String>,
}

/// The protection between the browser and this process, or a trusted proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransportSecurity {
    /// None: readable on the network.
    Clear,
    /// TLS.
    Tls,
}

/// What a cookie is called. `__Host-` lets no neighbour set it, and works with TLS alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct CookieNames {
    /// With TLS.
    pub(super) tls: &'static str,
    /// Without.
    pub(super) clear: &'static str,
}

/// What the session's cookie is called.
const COOKIES: CookieNames = CookieNames { tls: "__Host-procession", clear: "procession" };

impl RequestOrigin {
    /// The origin of a request.
    pub(super) fn from_parts(parts: &Parts, doorway: &Doorway) -> Self {
        let security = parts.extensions.get().copied().unwrap_or(ConnectionSecurity::Clear);
        Self::from_headers(&parts.headers, peer_address(&parts.extensions), security, doorway)
    }

    fn from_headers(
        headers: &HeaderMap,
        peer: Option<IpAddr>,
        security: ConnectionSecurity,
        doorway: &Doorway,
    ) -> Self {
        let is_proxy = peer.is_some_and(|peer| doorway.trusts(peer));
        let read_header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
        let address = match is_proxy {
            true => beyond(headers, doorway).or(peer),
            false => peer,
        };
        let is_tls = match &doorway.origin {
            Some(origin) => origin.starts_with("https:"),
            None => match read_header("x-forwarded-proto").filter(|_| is_proxy) {
                Some(protocol) => protocol.trim() == "https",
                None => security != ConnectionSecurity::Clear,
            },
        };
        let scheme = if is_tls { "https" } else { "http" };
        let host = read_header(HOST.as_str()).map(|host| format!("{scheme}://{host}"));
        Self {
            address: address.map_or_else(|| "local".to_owned(), |a| a.to_canonical().to_string()),
            transport: if is_tls { TransportSecurity::Tls } else { TransportSecurity::Clear },
            origin: doorway.origin.clone().or(host),
        }
    }

    /// The client address, if the connection has one.
    pub(super) fn client_ip(&self) -> Option<IpAddr> {
        self.address.parse().ok()
    }

    /// The origin of an unauthenticated client.
    pub(super) fn stranger(&self, headers: &HeaderMap) -> Stranger {
        let agent = headers.get(USER_AGENT).and_then(|v| v.to_str().ok());
        Stranger { address: self.address.clone(), agent: agent.map(str::to_owned) }
    }

    /// Scheme, host and port as the browser sees them.
    pub(super) fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// Refuses a change sent by a foreign page. Programs send no such headers.
    pub(super) fn require_same_site(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let read_header = |name: &str| headers.get(name).map(|v| v.to_str().unwrap_or("?"));
        let site =
            read_header("sec-fetch-site").is_none_or(|s| matches!(s, "same-origin" | "none"));
        let same = |sent: &str| self.origin().is_some_and(|own| own.eq_ignore_ascii_case(sent));
        match site && read_header(ORIGIN.as_str()).is_none_or(same) {
            true => Ok(()),
            false => Err(Problem::not_meant()),
        }
    }

    /// The session secret from the cookie.
    pub(super) fn session(&self, headers: &HeaderMap) -> Option<String> {
        self.cookie(headers, COOKIES)
    }

    /// The value of a cookie by its two names.
    pub(super) fn cookie(&self, headers: &HeaderMap, names: CookieNames) -> Option<String> {
        let name = self.named(names);
        let all = headers.get_all(COOKIE).iter().filter_map(|v| v.to_str().ok());
        let mut pairs =
            all.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
    }

    fn named(&self, names: CookieNames) -> &'static str {
        match self.transport {
            TransportSecurity::Tls => names.tls,
            TransportSecurity::Clear => names.clear,
        }
    }

    /// The header that sets the session cookie, or removes it without a secret.
    pub(super) fn set_session(&self, secret: Option<&str>) -> String {
        self.set_cookie(COOKIES, secret, "Strict", None)
    }

    /// The header that sets a cookie for this many seconds, or removes it.
    pub(super) fn set_cookie(
        &self,
        names: CookieNames,
        value: Option<&str>,
        site: &str,
        seconds: Option<u32>,
    ) -> String {
        let name = self.named(names);
        let secure = match self.transport {
            TransportSecurity::Tls => "; Secure",
            TransportSecurity::Clear => "",
        };
        let age = match (value, seconds) {
            (None, _) => "; Max-Age=0".to_owned(),
            (Some(_), Some(seconds)) => format!("; Max-Age={seconds}"),
            (Some(_), None) => String::new(),
        };
        let value = value.unwrap_or_default();
        format!("{name}={value}; Path=/; HttpOnly; SameSite={site}{secure}{age}")
    }
}

/// The address of the connection.
fn peer_address(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ConnectInfo<Peer>>().map(|ConnectInfo(Peer(address))| address.ip())
}

/// The client behind trusted proxies: the last address that is not a trusted proxy. Everything
/// before it may be forged.
fn beyond(headers: &HeaderMap, doorway: &Doorway) -> Option<IpAddr> {
    let forwarded = headers.get_all("x-forwarded-for").iter().filter_map(|v| v.to_str().ok());
    let forwarded: Vec<&str> = forwarded.flat_map(|line| line.split(',')).map(str::trim).collect();
    let addresses = forwarded.into_iter().rev().map_while(|text| text.parse::<IpAddr>().ok());
    addresses.into_iter().find(|address| !doorway.trusts(*address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use axum::http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn doorway(settings: &str) -> Doorway {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("procession.toml");
        std::fs::write(&file, format!("[http]\n{settings}\n")).expect("write");
        Config::load_file(Some(&file)).expect("settings").http.doorway().expect("a doorway")
    }

    fn over(
        security: ConnectionSecurity,
        settings: &str,
        peer: &str,
        pairs: &[(&'static str, &'static str)],
    ) -> RequestOrigin {
        RequestOrigin::from_headers(
            &headers(pairs),
            peer.parse().ok(),
            security,
            &doorway(settings),
        )
    }

    #[test]
    fn tls_of_our_own_counts_unless_a_proxy_says_what_its_client_spoke() {
        let tls = |settings: &str, pairs| over(ConnectionSecurity::Tls, settings, "9.9.9.9", pairs);
        let direct = tls("", &[("host", "h:8088"), ("x-forwarded-proto", "http")]);
        assert_eq!(
            direct.transport,
            TransportSecurity::Tls,
            "a stranger says nothing about itself"
        );
        assert_eq!(direct.origin(), Some("https://h:8088"));
        let proxy = "trusted_proxies = ['9.9.9.9']";
        assert_eq!(
            tls(proxy, &[("x-forwarded-proto", "http")]).transport,
            TransportSecurity::Clear
        );
        assert_eq!(tls(proxy, &[]).transport, TransportSecurity::Tls);
    }

    fn way(settings: &str, peer: &str, pairs: &[(&'static str, &'static str)]) -> RequestOrigin {
        over(ConnectionSecurity::Clear, settings, peer, pairs)
    }

    #[test]
    fn only_our_proxies_say_for_whom_they_ask() {
        let headers = [("x-forwarded-for", "1.1.1.1, 2.2.2.2"), ("x-forwarded-proto", "https")];
        let stranger = way("", "9.9.9.9", &headers);
        assert_eq!(
            (stranger.address.as_str(), stranger.transport),
            ("9.9.9.9", TransportSecurity::Clear)
        );
        let ours = "trusted_proxies = ['10.0.0.0/8']";
        let proxied = way(ours, "10.0.0.1", &headers);
        assert_eq!(
            (proxied.address.as_str(), proxied.transport),
            ("2.2.2.2", TransportSecurity::Tls)
        );
        let two = [("x-forwarded-for", "1.1.1.1, 2.2.2.2, 10.0.0.7")];
        assert_eq!(way(ours, "10.0.0.1", &two).address, "2.2.2.2");
        assert_eq!(way(ours, "10.0.0.1", &[("x-forwarded-for", "lies")]).address, "10.0.0.1");
        assert_eq!(way(ours, "9.9.9.9", &headers).address, "9.9.9.9");
    }

    #[test]
    fn a_page_of_somebody_else_is_refused() {
        let own = "public_url = 'https://p.example'";
        for (sent, is_ours) in [
            (&[("origin", "https://p.example"), ("sec-fetch-site", "same-origin")][..], true),
            (&[], true),
            (&[("origin", "https://evil.example")], false),
            (&[("origin", "http://p.example")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
        ] {
            let way = way(own, "9.9.9.9", sent);
            assert_eq!(way.require_same_site(&headers(sent)).is_ok(), is_ours, "{sent:?}");
        }
        let by_host = [("host", "h:8088"), ("origin", "http://h:8088")];
        assert!(way("", "9.9.9.9", &by_host).require_same_site(&headers(&by_host)).is_ok());
    }

    #[test]
    fn the_cookie_is_as_strict_as_the_way_allows() {
        let tls = way("public_url = 'https://p.example'", "9.9.9.9", &[]);
        assert_eq!(
            tls.set_session(Some("s")),
            "__Host-procession=s; Path=/; HttpOnly; SameSite=Strict; Secure"
        );
        let clear = way("", "9.9.9.9", &[]);
        assert_eq!(
            clear.set_session(None),
            "procession=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"
        );
        let sent = headers(&[("cookie", "a=b; procession=s; __Host-procession=t")]);
        assert_eq!(clear.session(&sent).as_deref(), Some("s"));
        assert_eq!(tls.session(&sent).as_deref(), Some("t"));
    }
}
