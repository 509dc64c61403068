//! Finds the word that a user probably meant.

/// Maximum length of a compared word; longer words are not typing errors.
const LONGEST: usize = 100;

/// The candidate most similar to `word`, if it is similar enough to be a typing error.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = word.to_lowercase().chars().collect();
    if wanted.len() > LONGEST {
        return None;
    }
    let limit = (wanted.len() / 3).min(3);
    candidates
        .into_iter()
        .filter(|c| c.chars().count().abs_diff(wanted.len()) <= limit)
        .map(|c| (distance(&wanted, &c.to_lowercase().chars().collect::<Vec<_>>()), c))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// `did you mean X? otherwise ` as the start of a hint, or an empty text.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, candidates) {
        Some(near) => format!("did you mean {near}? otherwise "),
        None => String::new(),
    }
}

/// Edit distance: insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let known = ["GL_LOAD", "GL_POST", "FX_LOAD", "timeout_sec"];
        for (word, near) in [
            ("GL_LAOD", Some("GL_LOAD")),
            ("gl_post", Some("GL_POST")),
            ("timeout_secs", Some("timeout_sec")),
            ("timeout", None),
            ("X", None),
        ] {
            assert_eq!(nearest(word, known), near, "{word}");
        }
        assert_eq!(nearest("g", ["h", "G"]), Some("G"));
    }
}
