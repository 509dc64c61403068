//! `job_output_value`: returned values that are too long for their row, in chunks.
//!
//! In chunks, because a statement of MySQL and MariaDB is limited to the server's
//! `max_allowed_packet`, and because a download then holds one chunk at a time. A chunk is a JSON
//! string: PostgreSQL cannot store the character U+0000 in a text, and a value may contain it.

use crate::db::SqlValue;
use crate::domain::job::outcome::{LargeValue, StoredValue};
use crate::domain::text::storable;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};

/// Bytes of a value per chunk. As JSON it has at most six times as many, which is below the 4 MiB
/// that every supported server accepts in a statement.
const CHUNK_BYTES: usize = 512 * 1024;

/// Maximum length of a stored name, in bytes: it is for people who look at the table.
const NAME_MAX: usize = 255;

const INSERT: &str = "INSERT INTO job_output_value \
    (queue_id, attempt, value_no, chunk_no, name, content, create_time) VALUES (?, ?, ?, ?, ?, ?, ?)";

/// The statements that store values, one row each.
pub fn inserts(values: &[LargeValue], now: Millis) -> Vec<(String, Vec<SqlValue>)> {
    let mut statements = Vec::new();
    for LargeValue { reference, name, text } in values {
        for (chunk_no, chunk) in (0_u32..).zip(chunks(text)) {
            let row = vec![
                reference.queue_id.into(),
                reference.attempt.into(),
                reference.position.into(),
                chunk_no.into(),
                storable(name.as_bytes(), NAME_MAX).into(),
                serde_json::Value::from(chunk).to_string().into(),
                now.to_utc().into(),
            ];
            statements.push((INSERT.to_owned(), row));
        }
    }
    statements
}

/// Splits a text into pieces; none is empty unless the text is.
fn chunks(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while rest.len() > CHUNK_BYTES {
        let (piece, others) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES));
        pieces.push(piece);
        rest = others;
    }
    pieces.push(rest);
    pieces
}

/// Stores the values of one attempt in place of those of earlier attempts of its row.
pub async fn replace(tx: &mut Tx, values: &[LargeValue], now: Millis) -> Result<()> {
    let Some(LargeValue { reference, .. }) = values.first() else { return Ok(()) };
    let sql = "DELETE FROM job_output_value WHERE queue_id = ? AND attempt <= ?";
    let key = [reference.queue_id.into(), reference.attempt.into()];
    tx.execute(sql, &key).await.context("remove the values of earlier attempts")?;
    for (sql, row) in inserts(values, now) {
        tx.execute(&sql, &row).await.context("store a value of a job")?;
    }
    Ok(())
}

/// Removes the values of rows that are rerun.
pub async fn remove_of(tx: &mut Tx, rows: &[i64]) -> Result<()> {
    let sql = "DELETE FROM job_output_value WHERE queue_id";
    tx.execute_in(sql, &[], rows, "", &[]).await.context("remove the values of earlier runs")?;
    Ok(())
}

/// A chunk of a stored value; `None` after the last.
pub async fn chunk(tx: &mut Tx, of: &StoredValue, chunk_no: u32) -> Result<Option<String>> {
    let sql = "SELECT content FROM job_output_value \
               WHERE queue_id = ? AND attempt = ? AND value_no = ? AND chunk_no = ?";
    let key = [of.queue_id.into(), of.attempt.into(), of.position.into(), chunk_no.into()];
    let row = tx.fetch_optional(sql, &key).await.context("read a stored value")?;
    let Some(row) = row else { return Ok(None) };
    let text = row.get_text("content")?;
    serde_json::from_str(&text).map(Some).context("read a chunk of a stored value")
}

/// A stored value, or why it cannot be used.
pub async fn load_value(tx: &mut Tx, of: &StoredValue) -> Result<Result<String, String>> {
    let mut text = String::new();
    let mut next = 0;
    while let Some(piece) = chunk(tx, of, next).await? {
        text.push_str(&piece);
        next += 1;
    }
    if of.matches(&text) {
        return Ok(Ok(text));
    }
    Ok(Err(format!(
        "it is {}, and what is stored (row {}, attempt {}, value {}) has {} bytes or another SHA-256; run \
         the job that returned it again",
        of.describe(),
        of.queue_id,
        of.attempt,
        of.position,
        text.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        for text in ["", "x", &"月".repeat(CHUNK_BYTES / 2), &"x".repeat(2 * CHUNK_BYTES)] {
            let pieces = chunks(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| piece.len() <= CHUNK_BYTES));
        }
        assert_eq!(chunks(&"x".repeat(2 * CHUNK_BYTES)).len(), 2);
        let worst = serde_json::Value::from("\u{1}".repeat(CHUNK_BYTES)).to_string();
        assert!(worst.len() < 4 << 20, "a chunk fits in a statement: {}", worst.len());
    }
}
