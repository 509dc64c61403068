//! Answers that are packed on their way: JSON and text become a tenth as large.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;

/// Below this the headers and the time cost more than is won.
const LEAST: usize = 2 * 1024;
/// Above this it takes seconds; who fetches that much has a fast line.
const MOST: usize = 64 * 1024 * 1024;

/// Whether the caller takes gzip.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| {
        let (name, quality) = one.split_once(';').unwrap_or((one, ""));
        let quality = quality.trim().strip_prefix("q=").map(|q| q.trim().parse::<f32>());
        let refuses = matches!(quality, Some(Ok(q)) if q <= 0.0);
        matches!(name.trim(), "gzip" | "*") && !refuses
    })
}

/// The bytes packed, where that makes them smaller.
pub(super) fn pack(bytes: &[u8]) -> Option<Vec<u8>> {
    if !(LEAST..=MOST).contains(&bytes.len()) {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(6));
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().filter(|packed| packed.len() < bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use std::io::Read as _;

    fn asks(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))])
    }

    #[test]
    fn who_takes_gzip_says_so() {
        for yes in ["gzip", "br, gzip, deflate", "gzip;q=0.5", "*"] {
            assert!(accepts_gzip(&asks(yes)), "{yes}");
        }
        for no in ["br", "gzip;q=0", "identity", ""] {
            assert!(!accepts_gzip(&asks(no)), "{no}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn what_is_packed_is_what_was() {
        let text = "{\"status\":\"SUCCESS\"}".repeat(500);
        let packed = pack(text.as_bytes()).expect("smaller");
        assert!(packed.len() < text.len() / 10);
        let mut back = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut back).expect("gzip");
        assert_eq!(back, text);
        assert!(pack(b"short").is_none());
    }
}
