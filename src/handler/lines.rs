//! Cuts what a script prints into lines: bounded, whatever it prints.

use crate::domain::text::LINE_MAX;

/// Bytes that have not made a line yet. A line longer than `LINE_MAX` is cut into several, because
/// a reader that waits for the newline holds a 200 MB line whole.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Takes bytes and gives the lines they complete, without their newline.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(&first) = bytes.first() {
            let room = LINE_MAX - self.rest.len();
            let window = &bytes[..bytes.len().min(room)];
            if let Some(end) = window.iter().position(|b| *b == b'\n') {
                self.rest.extend_from_slice(&window[..end]);
                line(&self.rest);
                self.rest.clear();
                bytes = &bytes[end + 1..];
                continue;
            }
            self.rest.extend_from_slice(window);
            bytes = &bytes[window.len()..];
            if self.rest.len() < LINE_MAX {
                return;
            }
            // A newline right here ends this line, not an empty one after it.
            if bytes.first() == Some(&b'\n') {
                bytes = &bytes[1..];
                line(&self.rest);
                self.rest.clear();
                continue;
            }
            let cut = char_start(&self.rest);
            line(&self.rest[..cut]);
            self.rest.drain(..cut);
            debug_assert!(first != b'\n' || !self.rest.is_empty() || cut > 0);
        }
    }

    /// Gives what is left when the stream has ended without a newline.
    pub(crate) fn finish(self, mut line: impl FnMut(&[u8])) {
        if !self.rest.is_empty() {
            line(&self.rest);
        }
    }
}

/// Where a character begins that the end of `bytes` may have cut; its length when none was.
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
        let mut lines = Lines::default();
        for chunk in chunks {
            lines.feed(chunk, |line| found.push(line.to_vec()));
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
