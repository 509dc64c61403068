//! The console: pages compiled into the program, which fetch everything else from the API.
//!
//! A page names its script and styles with a version in the URL, so that browsers cache them
//! forever and another version of the program has other URLs. They are compressed once.

use crate::api::console_bundle::{ModuleSources, bundle};
use crate::api::problem::Problem;
use crate::api::response_encoding::{accepts_gzip, compress};
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rust_embed::Embed;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Read from the source directory in a debug build, so that a page can be changed without
/// compiling.
#[derive(Embed)]
#[folder = "src/console/"]
struct Pages;

/// The styles of the console, in the order of loading.
const STYLES: [&str; 6] = [
    "css/base.css",
    "css/parts.css",
    "css/shell.css",
    "css/pages.css",
    "css/design.css",
    "css/insight.css",
];
const SCRIPT: &str = "console.js";
const STYLE: &str = "console.css";
/// Texts of one language each, fetched on demand.
const WORDS: &str = "js/words/";
/// Libraries of others, fetched by the pages that need them.
const VENDOR: &str = "vendor/";
/// The placeholder of the version in a page.
const VERSION: &str = "{version}";
/// Cache control of versioned URLs: never revalidated.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Cache control of pages: always revalidated.
const ASK: &str = "no-cache";

/// A file in the form sent.
struct Asset {
    kind: String,
    bytes: Vec<u8>,
    /// The compressed form, where it is smaller.
    packed: Option<Vec<u8>>,
}

/// All files that a browser may fetch, of one version.
struct Assets {
    version: String,
    files: Mutex<HashMap<String, Option<Arc<Asset>>>>,
}

/// Constant in a release build; in a debug build files change while the process runs.
static ASSETS: LazyLock<Mutex<Arc<Assets>>> = LazyLock::new(|| Mutex::new(Arc::new(Assets::new())));

impl Assets {
    fn now() -> Arc<Self> {
        let mut assets = ASSETS.lock().unwrap_or_else(PoisonError::into_inner);
        if cfg!(debug_assertions) && assets.version != version() {
            *assets = Arc::new(Self::new());
        }
        Arc::clone(&assets)
    }

    fn new() -> Self {
        Self { version: version(), files: Mutex::default() }
    }

    /// The file of this name, compressed at the first request.
    fn get(&self, name: &str) -> Option<Arc<Asset>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.get(name) {
            return known.clone();
        }
        let made = self.make_asset(name).map(Arc::new);
        // Unknown names would fill the memory.
        if made.is_some() {
            files.insert(name.to_owned(), made.clone());
        }
        made
    }

    fn make_asset(&self, name: &str) -> Option<Asset> {
        let (kind, bytes) = match name {
            SCRIPT => ("text/javascript".to_owned(), script().into_bytes()),
            STYLE => ("text/css".to_owned(), styles()),
            _ => {
                let file = Pages::get(name)?;
                let kind = file.metadata.mimetype().to_owned();
                let bytes = match kind.as_str() {
                    "text/html" => {
                        let text = String::from_utf8_lossy(&file.data);
                        text.replace(VERSION, &self.version).into_bytes()
                    }
                    _ => file.data.into_owned(),
                };
                (kind, bytes)
            }
        };
        let kind = match kind.starts_with("text/") {
            true => format!("{kind}; charset=utf-8"),
            false => kind,
        };
        let packed = compress(&bytes);
        Some(Asset { kind, bytes, packed })
    }
}

/// A digest of all files and their names.
fn version() -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for name in Pages::iter() {
        context.update(name.as_bytes());
        if let Some(file) = Pages::get(&name) {
            context.update(&file.data);
        }
    }
    URL_SAFE_NO_PAD.encode(&context.finish().as_ref()[..9])
}

fn read_text(name: &str) -> Option<String> {
    Pages::get(name).map(|file| String::from_utf8_lossy(&file.data).into_owned())
}

/// All modules as one script. A fault in one is noticed in the browser, and by a test before that.
fn script() -> String {
    let names = Pages::iter().filter(|name| name.starts_with("js/") && name.ends_with(".js"));
    let sources: ModuleSources = names
        .filter_map(|name: Cow<'_, str>| Some((name.to_string(), read_text(&name)?)))
        .collect();
    bundle(&sources, "js/app.js", &[WORDS, VENDOR]).unwrap_or_else(|fault| {
        tracing::error!(fault, "the console's script cannot be made");
        format!("throw new Error({});", serde_json::Value::from(fault))
    })
}

fn styles() -> Vec<u8> {
    STYLES
        .iter()
        .filter_map(|name| Pages::get(name))
        .flat_map(|file| file.data.into_owned())
        .collect()
}

/// The page of the console.
pub(super) async fn serve_page(headers: HeaderMap) -> Response {
    asset_response(&headers, Assets::now().get("index.html").as_deref(), ASK)
}

/// The page about the API.
pub(super) async fn about_api(headers: HeaderMap) -> Response {
    asset_response(&headers, Assets::now().get("api.html").as_deref(), ASK)
}

/// Files for the pages: `VERSION/console.js`. A page opened before an upgrade gets the present
/// file, uncached.
pub(super) async fn serve_file(Path(path): Path<String>, headers: HeaderMap) -> Response {
    let assets = Assets::now();
    match path.split_once('/') {
        Some((version, name)) if version == assets.version => {
            asset_response(&headers, assets.get(name).as_deref(), FOR_EVER)
        }
        Some((_, name)) => asset_response(&headers, assets.get(name).as_deref(), ASK),
        None => asset_response(&headers, None, ASK),
    }
}

fn asset_response(headers: &HeaderMap, asset: Option<&Asset>, keep: &'static str) -> Response {
    let Some(asset) = asset else { return Problem::not_found("such page").into_response() };
    let packed = asset.packed.as_ref().filter(|_| accepts_gzip(headers));
    let bytes = packed.unwrap_or(&asset.bytes);
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(&digest.as_ref()[..15]));
    let has = headers.get(IF_NONE_MATCH).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let mut response = match has.split(',').any(|t| t.trim().trim_start_matches("W/") == tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => bytes.clone().into_response(),
    };
    let values = [
        (CONTENT_TYPE, asset.kind.as_str()),
        (CACHE_CONTROL, keep),
        (VARY, "Accept-Encoding"),
        (ETAG, &tag),
    ];
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    values.into_iter().for_each(|(name, value)| set(name, value));
    if packed.is_some() {
        set(CONTENT_ENCODING, "gzip");
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_holds_every_module_but_the_words() {
        let made = script();
        assert!(!made.starts_with("throw"), "{}", &made[..made.len().min(300)]);
        assert!(
            !made.contains("\nimport ") && !made.contains("\nexport "),
            "statements of modules are left"
        );
        let modules = made.matches("= (() => {\n").count();
        let words = Pages::iter().filter(|name| name.starts_with(WORDS)).count();
        // The page about the API is a script of its own, with one module, and so is the worker of all windows.
        let is_module = |name: &str| name.starts_with("js/") && name.ends_with(".js");
        let all = Pages::iter().filter(|name| is_module(name)).count();
        assert_eq!(modules + words + 3, all, "{modules} modules, {words} of words");
    }

    #[test]
    fn packing_is_worth_it() {
        let assets = Assets::now();
        let script = assets.get(SCRIPT).expect("the script");
        let packed = script.packed.as_ref().expect("packed");
        assert!(
            packed.len() * 3 < script.bytes.len(),
            "{} of {}",
            packed.len(),
            script.bytes.len()
        );
    }

    #[test]
    fn pages_name_the_version_and_nothing_else_of_the_console() {
        let assets = Assets::now();
        for name in ["index.html", "api.html"] {
            let page = assets.get(name).expect(name);
            let page = String::from_utf8(page.bytes.clone()).expect("text");
            assert!(!page.contains(VERSION), "{page}");
            let links = page.matches("\"/console/").count();
            let versioned = format!("\"/console/{}/", assets.version);
            assert!(links > 1 && links == page.matches(&versioned).count(), "{page}");
        }
    }
}
