//! Stores large JSON compressed.
//!
//! The definition of 100,000 jobs is 22 MB of JSON with many repetitions. A statement of MySQL and
//! MariaDB is limited to 16 MiB unless the server is configured otherwise. Compressed it has 1 MB.

use crate::db::Dialect;
use crate::store::Tx;
use anyhow::{Context as _, Result, ensure};
use base64::engine::general_purpose::STANDARD;
use base64::read::DecoderReader;
use base64::write::EncoderStringWriter;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufReader, BufWriter, Write};

/// The prefix of compressed text, which no JSON has. gzip in Base64 follows.
const MARK: &str = "gzip:";

/// Maximum length of text that is stored uncompressed, in bytes: about 30 jobs, which people may
/// want to read. Together with the other values it must fit into one packet of PostgreSQL over TLS
/// (`db::bulk` explains what a second one costs): with 64 KiB here a hundred batches of 100 jobs
/// took 5 s to open, 40 ms each.
const PLAIN_MAX: usize = 8_192;

/// Above this size MySQL and MariaDB are asked for their packet limit; the smallest default limit
/// of any supported server.
const ASK_FROM: usize = 4 << 20;

/// A value as text for a column.
pub(super) fn pack_value(value: &impl Serialize) -> Result<String> {
    // Buffered: the compressor takes as long for a comma as for a line.
    let mut sink = BufWriter::with_capacity(1 << 15, PackingSink::Plain(Vec::new()));
    serde_json::to_writer(&mut sink, value)?;
    match sink.into_inner().map_err(std::io::IntoInnerError::into_error)? {
        PackingSink::Plain(text) => Ok(String::from_utf8(text)?),
        PackingSink::Packed(packer) => Ok(MARK.to_owned() + &packer.finish()?.into_inner()),
    }
}

/// Parses such a text.
pub(super) fn unpack<T: DeserializeOwned>(text: &str) -> Result<T> {
    let Some(packed) = text.strip_prefix(MARK) else { return Ok(serde_json::from_str(text)?) };
    let decoder =
        BufReader::with_capacity(1 << 15, DecoderReader::new(packed.as_bytes(), &STANDARD));
    // As it comes: the text of 100,000 jobs is 30 MB.
    let plain = BufReader::with_capacity(1 << 15, GzDecoder::new(decoder));
    serde_json::from_reader(plain).context("unpack it")
}

/// Refuses a text that the server would not accept: it would close the connection, which looks like
/// a transient failure.
pub(super) async fn check_fits(tx: &mut Tx, what: &str, text: &str) -> Result<()> {
    if tx.dialect() != Dialect::Mysql || text.len() < ASK_FROM {
        return Ok(());
    }
    let row = tx.fetch_optional("SELECT @@max_allowed_packet AS most", &[]).await?;
    let most = row.map(|row| row.get_int("most")).transpose()?.unwrap_or(i64::MAX);
    // A packet also holds the other values of the statement.
    let needed = text.len() + (1 << 16);
    ensure!(
        i64::try_from(needed)? <= most,
        "{what} takes {} MiB packed, and the database server takes {} MiB at most in a statement; set its \
         max_allowed_packet to {} MiB or more, or make the group several groups",
        as_mebibytes(needed),
        most >> 20,
        as_mebibytes(needed).next_power_of_two()
    );
    Ok(())
}

fn as_mebibytes(bytes: usize) -> usize {
    bytes.div_ceil(1 << 20)
}

/// Receives JSON, and compresses it once it is long.
enum PackingSink {
    Plain(Vec<u8>),
    Packed(Box<GzEncoder<EncoderStringWriter<'static, base64::engine::GeneralPurpose, String>>>),
}

impl Write for PackingSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Self::Plain(text) = self {
            text.extend_from_slice(bytes);
            if text.len() > PLAIN_MAX {
                // The fastest level: the others make it a little smaller and take five times as
                // long.
                let mut packer = Box::new(GzEncoder::new(
                    EncoderStringWriter::new(&STANDARD),
                    Compression::fast(),
                ));
                packer.write_all(text)?;
                *self = Self::Packed(packer);
            }
            return Ok(bytes.len());
        }
        match self {
            Self::Plain(text) => text.write(bytes),
            Self::Packed(packer) => packer.write_all(bytes).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_text_stays_readable_and_long_text_is_packed() {
        assert_eq!(pack_value(&["月", "b"]).expect("short"), r#"["月","b"]"#);
        let many: Vec<String> = (0..20_000).map(|i| format!("job {}", i % 100)).collect();
        let packed = pack_value(&many).expect("long");
        assert!(packed.starts_with(MARK) && packed.len() < 20_000, "{}", packed.len());
        assert_eq!(unpack::<Vec<String>>(&packed).expect("unpack"), many);
        let cut = &packed[..packed.len() - 8];
        let error = format!("{:#}", unpack::<Vec<String>>(cut).expect_err("cut short"));
        assert!(error.starts_with("unpack it: "), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn what_is_packed_comes_out_as_it_went_in(
            words in prop::collection::vec("[ -~\u{4e00}-\u{4e40}]{0,2000}", 0..100)
        ) {
            let packed = pack_value(&words).expect("pack");
            prop_assert_eq!(unpack::<Vec<String>>(&packed).expect("unpack"), words);
        }
    }
}
