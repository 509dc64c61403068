//! Builds the request of an HTTP job: its URL, which stays below the registered base URL, its
//! headers and its body.

use crate::domain::job::ParamType;
use crate::domain::job::body::{HttpBody, HttpCall, HttpHost};
use crate::domain::job::secret::MaskedValue;
use crate::domain::params::BoundParam;
use crate::domain::params::param_expressions::{self, ParamPiece, Reference};
use crate::domain::params::secret_names;
use bigdecimal::BigDecimal;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use url::Url;

/// Permitted methods.
pub static METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// Headers that a definition may not set, because they control framing and routing of the message.
pub const OWN_HEADERS: [&str; 6] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te"];

/// The header by which a server recognizes a repeated call. A job may set it itself; a host may
/// not, because all its calls would share the value.
pub const KEY_HEADER: &str = "idempotency-key";

/// Characters of a key that are escaped in a header: controls, blanks and `%`.
const KEY_ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// An idempotency key as a header value: non-ASCII characters and `%` are percent-encoded, so that
/// two keys never become one.
pub fn key_value(key: &str) -> String {
    utf8_percent_encode(key, KEY_ESCAPED).to_string()
}

/// Characters that are escaped anywhere in a URL.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

impl HttpHost {
    /// The environment variable that may replace `base_url`.
    pub fn url_env(&self) -> String {
        format!("PROCESSION_HOST_{}", self.name.to_uppercase().replace('-', "_"))
    }

    /// The environment variable that may replace `ui_url`.
    pub fn ui_url_env(&self) -> String {
        format!("{}_UI", self.url_env())
    }
}

/// Whether a call can be repeated without harm when the outcome of the first is unknown.
pub fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}

/// Parses the base URL of a host. An error contains nothing of the URL, which may contain a secret
/// by mistake.
pub fn parse_base_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).map_err(|error| format!("is not readable: {error}"))?;
    let fault = if !matches!(url.scheme(), "http" | "https") {
        "has to begin with https:// or http://"
    } else if url.host_str().is_none_or(str::is_empty) {
        "names no host"
    } else if !url.username().is_empty() || url.password().is_some() {
        "holds a user or a password; send them in a header, with ${secret.NAME}"
    } else if url.query().is_some() || url.fragment().is_some() {
        "holds a '?' or a '#'; write what follows them into the path of the call"
    } else {
        return Ok(url);
    };
    Err(fault.to_owned())
}

/// The names in `{…}` of a text.
pub fn names(text: &str) -> Result<Vec<&str>, String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let after = rest[open..].strip_prefix('{').and_then(|r| r.split_once('}'));
        let (name, tail) = after
            .filter(|(name, _)| !name.is_empty() && !name.contains('{'))
            .ok_or_else(|| "has a '{' or '}' that is not part of {name}".to_owned())?;
        found.push(name);
        rest = tail;
    }
    Ok(found)
}

/// The fault of a call's path as written, if any.
pub fn path_fault(path: &str) -> Option<&'static str> {
    let bare = path.split(['?', '#']).next().unwrap_or_default();
    if path.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Some("holds a blank, a backslash or a control character; write it as %XX");
    }
    if path.contains('#') {
        return Some("holds a '#', which servers never see; write it as %23");
    }
    climbs(bare).then_some("leads above the host's own URL with '..'; write the path without dots")
}

/// Whether a segment is `.` or `..` in any encoding that a URL parser knows.
fn climbs(path: &str) -> bool {
    path.split('/').any(|segment| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    })
}

/// Replaces each `{name}` by the parameter; errors do not contain the text of a secret.
pub fn fill_argument(text: &str, params: &[BoundParam]) -> Result<String, String> {
    for name in names(text)? {
        let param = params.iter().find(|p| p.name == name);
        if param.and_then(|p| p.value.as_ref()).is_some_and(MaskedValue::is_secret) {
            return Err(format!(
                "{{{name}}} is secret, and the cluster shows arguments to all its users"
            ));
        }
    }
    filled(text, params, |value| Ok(value.to_owned()))
}

fn filled(
    text: &str,
    params: &[BoundParam],
    written: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    names(text)?;
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, tail) = after.split_once('}').unwrap_or((after, ""));
        let param = params.iter().find(|p| p.name == name);
        let param = param.ok_or_else(|| format!("{{{name}}} is not among the job's parameters"))?;
        let value = param.expose_text().ok_or_else(|| format!("{{{name}}} has no value"))?;
        made.push_str(before);
        made.push_str(&written(value)?);
        rest = tail;
    }
    made.push_str(rest);
    Ok(made)
}

/// The URL of a call. Whatever the parameters contain, it stays below the host's base URL.
pub fn build_url(base: &Url, call: &HttpCall, params: &[BoundParam]) -> Result<Url, String> {
    let path = filled(&call.path, params, |v| Ok(utf8_percent_encode(v, ESCAPED).to_string()))
        .map_err(|why| format!("path: {why}"))?;
    if let Some(fault) = path_fault(&path) {
        return Err(format!("path {fault}"));
    }
    let root = base.as_str().trim_end_matches('/');
    let url = Url::parse(&format!("{root}/{}", path.trim_start_matches('/')))
        .map_err(|error| format!("path makes no URL: {error}"))?;
    let below = base.path().trim_end_matches('/');
    let stays = url.origin() == base.origin()
        && url.username() == base.username()
        && url.password() == base.password()
        && url.path().strip_prefix(below).is_some_and(|rest| rest.starts_with('/'));
    if stays { Ok(url) } else { Err("path leads away from the host's own URL".to_owned()) }
}

/// A header value of a call. A line break in it would allow header injection and is refused.
pub fn header(
    text: &str,
    params: &[BoundParam],
    secret: &dyn Fn(&str) -> Option<SecretString>,
) -> Result<String, String> {
    let mut value = String::new();
    for piece in header_pieces(text)? {
        match piece {
            ParamPiece::Text(text) => value.push_str(&filled(&text, params, |v| Ok(v.to_owned()))?),
            ParamPiece::Name(_, Reference::Secret(name)) => {
                let found = secret(&name).ok_or_else(|| format!("has no secret {name}"))?;
                value.push_str(found.expose_secret());
            }
            ParamPiece::Name(name, _) => {
                return Err(format!("holds ${{{name}}}, which is no secret"));
            }
        }
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err("holds a line break or another control character".to_owned());
    }
    Ok(value)
}

fn header_pieces(text: &str) -> Result<Vec<ParamPiece>, String> {
    param_expressions::pieces(text)
        .map_err(|_| "holds a ${…} that is not ${secret.NAME}".to_owned())
}

/// The names in `{…}` of a header value as written, or its fault.
pub fn header_names(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for piece in header_pieces(text)? {
        match piece {
            ParamPiece::Text(text) => found.extend(names(&text)?.into_iter().map(str::to_owned)),
            ParamPiece::Name(_, Reference::Secret(_)) => {}
            ParamPiece::Name(name, _) => {
                return Err(format!("holds ${{{name}}}, which is no secret"));
            }
        }
    }
    Ok(found)
}

/// The secrets that the headers of a call refer to.
pub fn secrets(call: Option<&impl Borrow<HttpCall>>, host: Option<&HttpHost>) -> BTreeSet<String> {
    let of_call = call.into_iter().flat_map(|call| call.borrow().headers.values());
    let texts = of_call.chain(host.into_iter().flat_map(|host| host.headers.values()));
    texts.flat_map(|text| secret_names(text)).collect()
}

/// The parameters that neither the path nor a header uses: they are sent in the body.
fn in_body<'a>(call: &HttpCall, params: &'a [BoundParam]) -> Vec<&'a BoundParam> {
    let mut used: Vec<String> =
        names(&call.path).unwrap_or_default().into_iter().map(str::to_owned).collect();
    used.extend(call.headers.values().flat_map(|text| header_names(text).unwrap_or_default()));
    params.iter().filter(|p| !used.contains(&p.name)).collect()
}

/// Content type and text of the body; none when the call sends none.
pub fn build_body(call: &HttpCall, params: &[BoundParam]) -> Option<(&'static str, String)> {
    let params = in_body(call, params);
    match call.send {
        HttpBody::None => None,
        HttpBody::Json => Some(("application/json", object(&params))),
        HttpBody::Form => {
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            for param in params {
                form.append_pair(&param.name, param.expose_text().unwrap_or_default());
            }
            Some(("application/x-www-form-urlencoded", form.finish()))
        }
    }
}

/// Parameters as a JSON object, with JSON types.
pub fn object(params: &[impl Borrow<BoundParam>]) -> String {
    let one = |p: &BoundParam| format!("{}:{}", quoted(&p.name), param_to_json(p));
    let fields: Vec<String> = params.iter().map(|p| one(p.borrow())).collect();
    format!("{{{}}}", fields.join(","))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value as JSON with every digit: serde's own numbers would round a decimal.
fn param_to_json(param: &BoundParam) -> String {
    let Some(text) = param.expose_text() else { return "null".to_owned() };
    match param.ty {
        ParamType::Int => text.parse::<i64>().map_or_else(|_| quoted(text), |n| n.to_string()),
        // JSON has no number that is infinite or none.
        ParamType::Decimal => {
            text.parse::<BigDecimal>().map_or_else(|_| quoted(text), |n| n.to_plain_string())
        }
        ParamType::Bool => (text == "true").to_string(),
        ParamType::Text | ParamType::Date | ParamType::Datetime | ParamType::Bytes => quoted(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::params::BoundParam;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn call(path: &str, send: HttpBody) -> HttpCall {
        HttpCall {
            host: "core".to_owned(),
            method: "POST".to_owned(),
            path: path.to_owned(),
            headers: BTreeMap::new(),
            send,
            expect_status: Vec::new(),
        }
    }

    fn param(name: &str, ty: ParamType, value: Option<&str>) -> BoundParam {
        BoundParam { ty, ..BoundParam::public_text(name, value.map(str::to_owned)) }
    }

    fn made(base_url: &str, path: &str, value: &str) -> Result<String, String> {
        let base = parse_base_url(base_url).expect("a base");
        let params = [param("a", ParamType::Text, Some(value))];
        build_url(&base, &call(path, HttpBody::None), &params).map(String::from)
    }

    #[test]
    fn what_a_host_may_be() {
        for good in ["https://h", "http://127.0.0.1:8080/api/", "https://[::1]/v1"] {
            assert!(parse_base_url(good).is_ok(), "{good}");
        }
        for (bad, said) in [
            ("ftp://h", "https://"),
            ("h:80", "https://"),
            ("not a url", "not readable"),
            ("https://u@h", "holds a user"),
            ("https://u:geheim@h", "holds a user"),
            ("https://h/?token=geheim", "holds a '?'"),
            ("https://h/#x", "holds a '?'"),
        ] {
            let error = parse_base_url(bad).expect_err(bad);
            assert!(error.contains(said) && !error.contains("geheim"), "{bad}: {error}");
        }
    }

    #[test]
    fn urls_stay_below_the_base() {
        let api = "https://h:8443/api";
        for (path, value, url) in [
            ("/loads/{a}", "SH 1/2", "https://h:8443/api/loads/SH%201%2F2"),
            (
                "loads?month={a}&x=1",
                "2024&y=2#z",
                "https://h:8443/api/loads?month=2024%26y%3D2%23z&x=1",
            ),
            ("//evil.example/{a}", "x", "https://h:8443/api/evil.example/x"),
            ("/{a}", "https://evil.example", "https://h:8443/api/https%3A%2F%2Fevil.example"),
            ("/{a}/{a}", "月", "https://h:8443/api/%E6%9C%88/%E6%9C%88"),
            ("/@evil.example:{a}", "80", "https://h:8443/api/@evil.example:80"),
        ] {
            assert_eq!(made(api, path, value), Ok(url.to_owned()), "{path}");
        }
        for (path, value) in [
            ("/{a}/x", ".."),
            ("/../x", ""),
            ("/%2e%2E/x", ""),
            ("/.{a}/x", "."),
            ("/x\\..\\y", ""),
            ("/a\tb", ""),
            ("/x#y", ""),
        ] {
            assert!(made(api, path, value).is_err(), "{path} with {value}");
        }
        assert_eq!(
            made(api, "/{b}", "x"),
            Err("path: {b} is not among the job's parameters".into())
        );
        assert!(names("/{a").is_err() && names("/a}").is_err() && names("/{}").is_err());
    }

    proptest! {
        #[test]
        fn no_parameter_leads_away(path in "[a-z/{}.?&=%@:\\\\]{0,12}", value in any::<String>()) {
            let path = path.replace("{}", "{a}");
            if let Ok(url) = made("https://h:8443/api", &path, &value) {
                prop_assert!(url.starts_with("https://h:8443/api/"), "{}", url);
            }
        }
    }

    #[test]
    fn a_key_is_a_header_in_any_script() {
        for (key, value) in [
            ("3f2a/202407/LOAD_GL/1", "3f2a/202407/LOAD_GL/1"),
            ("3f2a/202407/月结/1", "3f2a/202407/%E6%9C%88%E7%BB%93/1"),
            ("a b%20\n", "a%20b%2520%0A"),
        ] {
            assert_eq!(key_value(key), value);
        }
    }

    #[test]
    fn headers_are_one_line() {
        let params = [
            param("a", ParamType::Text, Some("x\r\nX-Admin: 1")),
            param("b", ParamType::Text, Some("{a}")),
            param("c", ParamType::Int, Some("3")),
        ];
        let secret = |name: &str| (name == "T").then(|| SecretString::from("gehe{c}im"));
        let header = |text: &str, params: &[BoundParam]| header(text, params, &secret);
        assert!(header("{a}", &params).is_err());
        assert_eq!(header("Bearer ${secret.T}{c}", &params), Ok("Bearer gehe{c}im3".to_owned()));
        assert_eq!(header("${secret.U}", &params), Err("has no secret U".to_owned()));
        assert_eq!(
            header("${batch_no}", &params),
            Err("holds ${batch_no}, which is no secret".to_owned())
        );
        let call = HttpCall {
            headers: [("A".to_owned(), "x${secret.T}".to_owned())].into(),
            ..call("/", HttpBody::None)
        };
        assert_eq!(secrets(Some(&call), None), ["T".to_owned()].into());
        assert_eq!(
            header("v-{b}{c}", &params),
            Ok("v-{a}3".to_owned()),
            "what comes out is not read again"
        );
    }

    #[test]
    fn bodies_hold_every_digit() {
        let params = [
            param("n", ParamType::Int, Some("9007199254740993")),
            param("d", ParamType::Decimal, Some("+0012345678901234567.10")),
            param("t", ParamType::Text, Some("O\"Brien\n月")),
            param("f", ParamType::Bool, Some("true")),
            param("none", ParamType::Int, None),
            param("id", ParamType::Text, Some("7")),
        ];
        let (kind, text) = build_body(&call("/x/{id}", HttpBody::Json), &params).expect("a body");
        assert_eq!(kind, "application/json");
        let wanted = r#"{"n":9007199254740993,"d":12345678901234567.10,"t":"O\"Brien\n月","f":true,"none":null}"#;
        assert_eq!(text, wanted);
        let (_, text) =
            build_body(&call("/x/{id}", HttpBody::Form), &params[2..4]).expect("a body");
        assert_eq!(text, "t=O%22Brien%0A%E6%9C%88&f=true");
        assert_eq!(build_body(&call("/", HttpBody::None), &params), None);
    }
}
