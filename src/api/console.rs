//! The console: pages that are compiled in, and fetch everything else from the API.

use crate::api::problem::Problem;
use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use rust_embed::Embed;

/// Read from the folder in a debug build, so that a page is changed without compiling.
#[derive(Embed)]
#[folder = "src/console/"]
struct Pages;

/// The one page.
pub(super) async fn page() -> Response {
    found("index.html")
}

/// The page about the API.
pub(super) async fn about_api() -> Response {
    found("api.html")
}

/// What it loads: styles, modules, words.
pub(super) async fn file(Path(name): Path<String>) -> Response {
    found(&name)
}

fn found(name: &str) -> Response {
    match Pages::get(name) {
        Some(file) => {
            let kind = file.metadata.mimetype();
            let kind = match kind.starts_with("text/") {
                true => format!("{kind}; charset=utf-8"),
                false => kind.to_owned(),
            };
            ([(CONTENT_TYPE, kind)], file.data).into_response()
        }
        None => Problem::not_found("such page").into_response(),
    }
}
