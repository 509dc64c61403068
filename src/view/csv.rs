//! Lines of CSV (RFC 4180) that spreadsheets do not interpret as formulas.

/// A line with its end. A cell that a spreadsheet would evaluate gets the prefix `'`, which makes
/// it text there; so does one that begins with a blank or a control character before such a sign.
pub(super) fn csv_line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.into_iter().map(csv_cell).collect();
    format!("{}\r\n", cells.join(","))
}

fn csv_cell(text: &str) -> String {
    let first = text.chars().find(|c| !c.is_whitespace() && !c.is_control());
    let runs = matches!(first, Some('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠' | '|' | '%'))
        || text.starts_with(['\t', '\r', '\n']);
    let text = if runs { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n', ' ']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::csv_line;

    #[test]
    fn what_a_spreadsheet_would_work_out_is_a_text() {
        for (cell, written) in [
            ("plain", "plain"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"http://x\")", "\"'=HYPERLINK(\"\"http://x\"\")\""),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            (" =1", "\"' =1\""),
            ("\t=1", "'\t=1"),
            ("\u{feff}plain", "\u{feff}plain"),
            ("＝1", "'＝1"),
            ("2026-07-01T00:00:00Z", "2026-07-01T00:00:00Z"),
            ("补跑", "补跑"),
        ] {
            assert_eq!(csv_line([cell]), format!("{written}\r\n"), "{cell:?}");
        }
        assert_eq!(csv_line(["a", "b", ""]), "a,b,\r\n");
    }
}
