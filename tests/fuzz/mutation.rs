//! Inputs made of the files of a corpus: pieces are changed, moved, repeated and mixed.

use crate::cron::generator::Dice;

/// Longest input that is made.
const LONGEST: usize = 16 * 1024;
/// Changes of one input, at most.
const CHANGES: u64 = 6;

/// Texts at which readers of numbers, dates, quotes and nesting go wrong.
#[rustfmt::skip]
const TOKENS: &[&str] = &[
    "0", "-1", "1", "32", "2147483648", "9223372036854775807", "-9223372036854775808", "18446744073709551616",
    "1e309", "1e-400", "NaN", "0.1", "9999", "10000", "00000000", "20240229", "20230229", "99991231", "2024Q5",
    "\"", "'", "\\", "\\\"", "${", "}", "$[", "{{", "}}", "((((((((", "))))))))", "[[[[[[[[", "{{{{{{{{", "*", "?",
    "L", "LW", "#", "/0", "/1", "-", "--", ",", ",,", ":", ": ", "\n", "\r\n", "\r", "\t", " ", "  ", "\0",
    "\u{7f}", "\u{85}", "\u{a0}", "\u{200b}", "\u{2028}", "\u{feff}", "é", "休", "月末", "𝔘", "&a ", "*a", "<<: *a",
    "!!int ", "!!binary ", "|\n", ">-\n", "- ", "? ", "null", "~", "true", "false", "%", "@", "`", "#x", "//", "/*",
    "..", "../", "=== b.yaml\n", "file://", "\u{1b}[0m",
];
/// So many of them are numbers.
const NUMBERS: usize = 19;

/// A digest of an input, for the name of its file.
pub(super) fn digest(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Makes inputs of a corpus.
pub(super) struct Mutator {
    seed: u64,
    corpus: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Mutator {
    pub(super) fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        let mut words: Vec<Vec<u8>> = corpus
            .iter()
            .flat_map(|file| file.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_'))
            .filter(|word| (2..40).contains(&word.len()))
            .map(<[u8]>::to_vec)
            .collect();
        words.sort();
        words.dedup();
        Self { seed, corpus, words }
    }

    /// The input of this number.
    pub(super) fn input(&self, number: u64) -> Vec<u8> {
        let mut dice = Dice(self.seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        let mut input = self.corpus[below(&mut dice, self.corpus.len())].clone();
        let changes = 1 + dice.below(CHANGES);
        for _ in 0..changes {
            self.change(&mut input, &mut dice);
            input.truncate(LONGEST);
        }
        input
    }

    fn change(&self, input: &mut Vec<u8>, dice: &mut Dice) {
        let at = below(dice, input.len() + 1);
        let end = (at + 1 + below(dice, 24)).min(input.len());
        match below(dice, 10) {
            0 if at < input.len() => input[at] ^= 1 << below(dice, 8),
            1 => drop(input.drain(at..end)),
            2 => insert(input, at, TOKENS[below(dice, TOKENS.len())].as_bytes()),
            3 => drop(input.splice(at..end, TOKENS[below(dice, TOKENS.len())].bytes())),
            4 if !self.words.is_empty() => {
                insert(input, at, &self.words[below(dice, self.words.len())]);
            }
            5 => self.change_number(input, at, dice),
            6 => repeat(input, at, dice),
            7 => self.change_line(input, dice),
            8 => {
                let other = &self.corpus[below(dice, self.corpus.len())];
                let from = below(dice, other.len() + 1);
                let to = (from + 1 + below(dice, 200)).min(other.len());
                insert(input, at, &other[from..to]);
            }
            _ => input.truncate(at),
        }
    }

    /// Another number in the place of the next one.
    fn change_number(&self, input: &mut Vec<u8>, at: usize, dice: &mut Dice) {
        let Some(start) = input[at..].iter().position(u8::is_ascii_digit).map(|n| n + at) else {
            return;
        };
        let long = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = match below(dice, 3) {
            0 => dice.below(100).to_string(),
            1 => dice.below(u64::MAX).to_string(),
            _ => TOKENS[below(dice, NUMBERS)].to_owned(),
        };
        drop(input.splice(start..start + long, number.bytes()));
    }

    /// A line is taken out, repeated, or taken over from another file.
    fn change_line(&self, input: &mut Vec<u8>, dice: &mut Dice) {
        let mut lines: Vec<Vec<u8>> =
            input.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        if lines.is_empty() {
            return;
        }
        let at = below(dice, lines.len());
        match below(dice, 4) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(below(dice, lines.len()), lines[at].clone()),
            2 => lines.swap(at, 0),
            _ => {
                let other = &self.corpus[below(dice, self.corpus.len())];
                let others: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
                if !others.is_empty() {
                    lines.insert(at, others[below(dice, others.len())].to_vec());
                }
            }
        }
        *input = lines.concat();
    }
}

/// An index below `end`; 0 when `end` is 0.
fn below(dice: &mut Dice, end: usize) -> usize {
    usize::try_from(dice.below(end.max(1) as u64)).expect("an index")
}

fn insert(input: &mut Vec<u8>, at: usize, what: &[u8]) {
    drop(input.splice(at..at, what.iter().copied()));
}

/// A piece many times: nesting and lists grow by it.
fn repeat(input: &mut Vec<u8>, at: usize, dice: &mut Dice) {
    let end = (at + 1 + below(dice, 12)).min(input.len());
    let piece = input[at..end].repeat(1 << below(dice, 10));
    insert(input, end, &piece[..piece.len().min(LONGEST)]);
}
