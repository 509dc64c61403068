//! Compresses answers while they are written: JSON and text become a tenth as large, and the whole
//! text of a large one is never in memory. While a slow caller reads, the compressed form is held
//! in pieces that are freed as they are sent; for a caller without gzip they are decompressed one
//! after the other.

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http_body::{Frame, SizeHint};
use serde::Serialize;
use std::collections::VecDeque;
use std::io::{self, BufWriter, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Below this size the headers and the time cost more than is saved.
const LEAST: usize = 2 * 1024;
/// The size of a piece, compressed or not: what is passed to a connection at once.
const PIECE: usize = 64 * 1024;

/// Whether the caller accepts gzip.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| {
        let (name, quality) = one.split_once(';').unwrap_or((one, ""));
        let quality = quality.trim().strip_prefix("q=").map(|q| q.trim().parse::<f32>());
        let refuses = matches!(quality, Some(Ok(q)) if q <= 0.0);
        matches!(name.trim(), "gzip" | "*") && !refuses
    })
}

/// The compressed bytes, if they are smaller.
pub(super) fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() < LEAST {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(6));
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().filter(|packed| packed.len() < bytes.len())
}

/// An answer in the form held until it is sent.
pub(super) struct EncodedAnswer {
    digest: String,
    form: AnswerForm,
}

enum AnswerForm {
    /// Too short for compression.
    Plain(Vec<u8>),
    Packed(PackedText),
}

/// A text in compressed pieces.
struct PackedText {
    pieces: VecDeque<Bytes>,
    /// Size of the pieces.
    packed_bytes: u64,
    /// Size of the text.
    plain_bytes: u64,
}

impl EncodedAnswer {
    /// A document as JSON; written piece by piece, so that its complete text is never in memory.
    pub(super) fn of_json<T: Serialize>(document: &T) -> io::Result<Self> {
        let mut writer = BufWriter::with_capacity(PIECE, AnswerWriter::new());
        serde_json::to_writer(&mut writer, document).map_err(io::Error::from)?;
        writer.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
    }

    /// An existing text.
    pub(super) fn of_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut writer = AnswerWriter::new();
        writer.write_all(bytes)?;
        writer.finish()
    }

    /// The digest of the text, for the ETag.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// The body for a caller with or without gzip, and whether it is compressed.
    pub(super) fn into_body(self, accepts_gzip: bool) -> (Body, bool) {
        match self.form {
            AnswerForm::Plain(bytes) => (Body::from(bytes), false),
            AnswerForm::Packed(text) if accepts_gzip => (Body::new(PackedBody(text)), true),
            AnswerForm::Packed(text) => (Body::new(UnpackedBody::new(text)), false),
        }
    }
}

/// Receives a text, counts and digests it, and compresses it once it is long enough.
struct AnswerWriter {
    hash: ring::digest::Context,
    plain_bytes: u64,
    /// The beginning, until it is known whether the text is compressed.
    start: Vec<u8>,
    encoder: Option<GzEncoder<PieceWriter>>,
}

impl AnswerWriter {
    fn new() -> Self {
        let hash = ring::digest::Context::new(&ring::digest::SHA256);
        Self { hash, plain_bytes: 0, start: Vec::new(), encoder: None }
    }

    fn finish(self) -> io::Result<EncodedAnswer> {
        let digest = URL_SAFE_NO_PAD.encode(&self.hash.finish().as_ref()[..15]);
        let form = match self.encoder {
            None => AnswerForm::Plain(self.start),
            Some(encoder) => AnswerForm::Packed(encoder.finish()?.finish(self.plain_bytes)),
        };
        Ok(EncodedAnswer { digest, form })
    }
}

impl Write for AnswerWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.plain_bytes += bytes.len() as u64;
        if let Some(encoder) = &mut self.encoder {
            encoder.write_all(bytes)?;
        } else if self.start.len() + bytes.len() < LEAST {
            self.start.extend_from_slice(bytes);
        } else {
            // Level 3: JSON of batches takes half the time of level 6, for a tenth more bytes.
            let mut encoder = GzEncoder::new(PieceWriter::default(), Compression::new(3));
            encoder.write_all(&std::mem::take(&mut self.start))?;
            encoder.write_all(bytes)?;
            self.encoder = Some(encoder);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Splits its input into pieces: one long buffer would be copied each time it grows, and be freed
/// only as a whole.
#[derive(Default)]
struct PieceWriter {
    pieces: VecDeque<Bytes>,
    current: Vec<u8>,
    packed_bytes: u64,
}

impl PieceWriter {
    fn finish(mut self, plain_bytes: u64) -> PackedText {
        self.cut_piece();
        let Self { pieces, packed_bytes, .. } = self;
        PackedText { pieces, packed_bytes, plain_bytes }
    }

    fn cut_piece(&mut self) {
        if !self.current.is_empty() {
            self.packed_bytes += self.current.len() as u64;
            self.pieces.push_back(std::mem::take(&mut self.current).into());
        }
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.current.is_empty() {
            // Growing it step by step would fragment the heap.
            self.current.reserve_exact(PIECE);
        }
        let room = PIECE - self.current.len();
        let (now, _) = bytes.split_at(bytes.len().min(room));
        self.current.extend_from_slice(now);
        if self.current.len() == PIECE {
            self.cut_piece();
        }
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for PackedText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(piece) = self.pieces.front_mut() else { return Ok(0) };
        let taken = piece.split_to(piece.len().min(buffer.len()));
        let is_empty = piece.is_empty();
        buffer[..taken.len()].copy_from_slice(&taken);
        if is_empty {
            self.pieces.pop_front();
        }
        Ok(taken.len())
    }
}

/// The compressed pieces; each is freed once it is sent.
struct PackedBody(PackedText);

impl http_body::Body for PackedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = self.0.pieces.pop_front();
        if let Some(piece) = &piece {
            self.0.packed_bytes -= piece.len() as u64;
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.packed_bytes)
    }
}

/// The text, decompressed a piece at a time when the connection accepts it: about 0.2 ms of a
/// request thread.
struct UnpackedBody {
    decoder: GzDecoder<PackedText>,
    left: u64,
}

impl UnpackedBody {
    fn new(text: PackedText) -> Self {
        let left = text.plain_bytes;
        Self { decoder: GzDecoder::new(text), left }
    }
}

impl http_body::Body for UnpackedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let size = usize::try_from(self.left).map_or(PIECE, |left| left.min(PIECE));
        let mut piece = vec![0; size];
        let read = self.decoder.read_exact(&mut piece);
        self.left -= size as u64;
        Poll::Ready(Some(read.map(|()| Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use futures_util::StreamExt as _;
    use serde::Serializer;

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
        let packed = compress(text.as_bytes()).expect("smaller");
        assert!(packed.len() < text.len() / 10);
        let mut back = String::new();
        GzDecoder::new(&packed[..]).read_to_string(&mut back).expect("gzip");
        assert_eq!(back, text);
        assert!(compress(b"short").is_none());
    }

    /// A document that is generated while it is written, unlike a handler's: so that only the
    /// answer is measured.
    struct Rows(u32);

    impl Serialize for Rows {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let row =
                |n: u32| format!("job {n} of the month-end close: SUCCESS after {} ms", n % 977);
            serializer.collect_seq((0..self.0).map(row))
        }
    }

    async fn read(body: Body) -> (Vec<u8>, usize) {
        let (mut all, mut longest) = (Vec::new(), 0);
        let mut pieces = body.into_data_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.expect("a piece");
            longest = longest.max(piece.len());
            all.extend_from_slice(&piece);
        }
        (all, longest)
    }

    #[tokio::test]
    async fn an_answer_is_the_same_however_it_is_sent() {
        for rows in [0, 1, 40, 5_000, 20_000] {
            let text = serde_json::to_vec(&Rows(rows)).expect("JSON");
            let encoded = || EncodedAnswer::of_json(&Rows(rows)).expect("an answer");
            let digest = ring::digest::digest(&ring::digest::SHA256, &text);
            assert_eq!(encoded().digest(), URL_SAFE_NO_PAD.encode(&digest.as_ref()[..15]));
            let of_bytes = EncodedAnswer::of_bytes(&text).expect("an answer");
            assert_eq!(of_bytes.digest(), encoded().digest(), "{rows}");
            let (body, is_packed) = encoded().into_body(false);
            assert!(!is_packed);
            let hint = http_body::Body::size_hint(&body).exact();
            assert_eq!(hint, Some(text.len() as u64), "{rows}: Content-Length");
            let (plain, longest) = read(body).await;
            assert!(plain == text && longest <= PIECE, "{rows}: {longest}");
            let (body, is_packed) = encoded().into_body(true);
            assert_eq!(is_packed, text.len() >= LEAST, "{rows}");
            let hint = http_body::Body::size_hint(&body).exact();
            let (sent, longest) = read(body).await;
            assert_eq!(hint, Some(sent.len() as u64), "{rows}: Content-Length");
            assert!(longest <= PIECE, "{rows}: {longest}");
            let mut back = Vec::new();
            match is_packed {
                true => drop(GzDecoder::new(&sent[..]).read_to_end(&mut back).expect("gzip")),
                false => back = sent,
            }
            assert!(back == text, "{rows}");
        }
    }

    /// The peak memory of this process in KiB; Linux counts it.
    fn peak_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("status of the process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Only the unsent compressed form of the text is held.
    #[tokio::test]
    async fn the_text_of_a_large_answer_is_nowhere_whole() {
        let before = peak_kib();
        let answer = EncodedAnswer::of_json(&Rows(700_000)).expect("an answer");
        let AnswerForm::Packed(text) = &answer.form else { panic!("it is not packed") };
        let (plain, packed) = (text.plain_bytes / 1024, text.packed_bytes / 1024);
        assert!(plain > 35 * 1024, "{plain} KiB");
        assert!(packed < plain / 5, "{packed} of {plain} KiB");
        let (body, _) = answer.into_body(false);
        let mut pieces = body.into_data_stream();
        let mut sent = 0;
        while let Some(piece) = pieces.next().await {
            sent += piece.expect("a piece").len() as u64;
        }
        assert_eq!(sent / 1024, plain);
        let grown = peak_kib() - before;
        assert!(grown < plain / 3, "{grown} KiB for {packed} KiB of {plain} KiB");
    }

    #[tokio::test]
    async fn what_is_sent_is_not_held_any_more() {
        let answer = EncodedAnswer::of_json(&Rows(60_000)).expect("an answer");
        let AnswerForm::Packed(text) = answer.form else { panic!("it is not packed") };
        let count = text.pieces.len();
        assert!(count > 4, "{count} pieces");
        let mut body = PackedBody(text);
        for sent in 1..=count {
            let next =
                std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx));
            assert!(next.await.is_some_and(|piece| piece.is_ok()));
            assert_eq!(body.0.pieces.len(), count - sent);
        }
    }
}
