//! Splits the output of a script into lines of bounded length.

use crate::domain::text::LINE_MAX;

/// A line, or a piece of a line that is longer than `LINE_MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinePiece<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) place: PiecePosition,
}

/// The position of a piece in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PiecePosition {
    /// It begins the line.
    Start,
    /// The line began before it.
    Middle,
}

/// Bytes that do not form a line yet. A line longer than `LINE_MAX` is cut into several, because a
/// reader that waits for the newline would hold a 200 MB line in memory.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    rest: Vec<u8>,
    /// `rest` continues a line that was cut.
    is_cut: bool,
}

impl LineSplitter {
    /// Adds bytes and passes on the completed lines, without their newline.
    pub(crate) fn feed_bytes(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        self.feed_pieces(bytes, |piece| line(piece.bytes));
    }

    fn take_place(&mut self, is_cut: bool) -> PiecePosition {
        if std::mem::replace(&mut self.is_cut, is_cut) {
            PiecePosition::Middle
        } else {
            PiecePosition::Start
        }
    }

    /// The same, with the position of each piece in its line.
    pub(crate) fn feed_pieces(&mut self, mut bytes: &[u8], mut piece: impl FnMut(LinePiece<'_>)) {
        while let Some(&first) = bytes.first() {
            let room = LINE_MAX - self.rest.len();
            let window = &bytes[..bytes.len().min(room)];
            if let Some(end) = window.iter().position(|b| *b == b'\n') {
                self.rest.extend_from_slice(&window[..end]);
                let place = self.take_place(false);
                // A newline directly after a cut only ends that line.
                if !(place == PiecePosition::Middle && self.rest.is_empty()) {
                    piece(LinePiece { bytes: &self.rest, place });
                }
                self.rest.clear();
                bytes = &bytes[end + 1..];
                continue;
            }
            self.rest.extend_from_slice(window);
            bytes = &bytes[window.len()..];
            if self.rest.len() < LINE_MAX {
                return;
            }
            // A newline directly here ends this line, and does not start an empty one.
            if bytes.first() == Some(&b'\n') {
                bytes = &bytes[1..];
                let place = self.take_place(false);
                piece(LinePiece { bytes: &self.rest, place });
                self.rest.clear();
                continue;
            }
            let cut = char_start(&self.rest);
            let place = self.take_place(true);
            piece(LinePiece { bytes: &self.rest[..cut], place });
            self.rest.drain(..cut);
            debug_assert!(first != b'\n' || !self.rest.is_empty() || cut > 0);
        }
    }

    /// Passes on what is left when the stream has ended without a newline.
    pub(crate) fn finish(self, mut line: impl FnMut(&[u8])) {
        self.finish_pieces(|piece| line(piece.bytes));
    }

    /// The same, with its position in its line.
    pub(crate) fn finish_pieces(mut self, mut piece: impl FnMut(LinePiece<'_>)) {
        if !self.rest.is_empty() {
            let place = self.take_place(false);
            piece(LinePiece { bytes: &self.rest, place });
        }
    }
}

/// The start of a character that the end of `bytes` may have cut; the length if none was.
fn char_start(bytes: &[u8]) -> usize {
    let tail = bytes.iter().rev().take(4).position(|b| b & 0xC0 != 0x80);
    match tail {
        Some(back) if bytes[bytes.len() - 1 - back] >= 0xC0 => bytes.len() - 1 - back,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut lines = LineSplitter::default();
        for chunk in chunks {
            lines.feed_bytes(chunk, |line| found.push(line.to_vec()));
        }
        lines.finish(|line| found.push(line.to_vec()));
        found
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let long = "月".repeat(LINE_MAX / 3 + 10);
        let found = cut(&[long.as_bytes()]);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|line| std::str::from_utf8(line).is_ok()));
        assert_eq!(cut(&[b"a\n\nb", b"c\n", b"d"]), [&b"a"[..], b"", b"bc", b"d"]);
        let exact = [vec![b'x'; LINE_MAX], b"\ny".to_vec()].concat();
        assert_eq!(cut(&[&exact]).len(), 2);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300), at in 0usize..300) {
            let (a, b) = bytes.split_at(at.min(bytes.len()));
            let mut expected: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            prop_assert_eq!(cut(&[a, b]), expected);
        }
    }
}
