//! Looks up time zones by name.

use super::ScheduleError;
use crate::domain::text::did_you_mean::nearest;
use crate::domain::text::truncate_text;
use chrono_tz::{TZ_VARIANTS, Tz};

/// The zone with this IANA name.
///
/// # Errors
/// [`ScheduleError::Zone`], with the name that was probably meant.
pub fn read_zone(word: &str) -> Result<Tz, ScheduleError> {
    let word = word.trim();
    word.parse()
        .map_err(|_| ScheduleError::Zone { word: truncate_text(word, 100), cure: zone_hint(word) })
}

/// Abbreviations that mean different zones in different countries: any suggestion would be wrong
/// for some users.
const SHARED: [(&str, &str); 4] = [
    ("CST", "Asia/Shanghai, America/Chicago or America/Havana"),
    ("IST", "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem"),
    ("BST", "Europe/London or Asia/Dhaka"),
    ("AST", "America/Halifax or Asia/Riyadh"),
];

fn zone_hint(word: &str) -> String {
    if let Some((short, zones)) = SHARED.iter().find(|(short, _)| word.eq_ignore_ascii_case(short))
    {
        return format!(
            "{short} is the name of several zones; write the one that is meant: {zones}"
        );
    }
    let names = || TZ_VARIANTS.iter().map(|zone| zone.name());
    let wanted = word.replace(' ', "_");
    let city =
        |name: &&str| name.rsplit('/').next().is_some_and(|c| c.eq_ignore_ascii_case(&wanted));
    let region_first = |name: &&str| (!name.contains('/'), name.len());
    let meant = names().filter(city).min_by_key(region_first);
    if let Some(meant) = meant.or_else(|| nearest(&wanted, names())) {
        return format!("did you mean {meant}?");
    }
    let offset = word.contains(['+', '-']) || word.chars().any(|c| c.is_ascii_digit());
    if offset {
        return "an offset says nothing of clock changes; write an IANA name such as Asia/Shanghai"
            .to_owned();
    }
    "write an IANA name such as Asia/Shanghai or America/New_York".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_zone_names_the_right_one() {
        for (word, said) in [
            ("Asia/Shangai", "did you mean Asia/Shanghai?"),
            ("asia/shanghai", "did you mean Asia/Shanghai?"),
            ("Shanghai", "did you mean Asia/Shanghai?"),
            ("New York", "did you mean America/New_York?"),
            ("GMT+8:30", "write an IANA name"),
            ("+08:00", "write an IANA name"),
            ("北京", "write an IANA name"),
            (
                "CST",
                "CST is the name of several zones; write the one that is meant: Asia/Shanghai, America/Chicago",
            ),
            ("cst", "Asia/Shanghai"),
        ] {
            let error = read_zone(word).expect_err(word).to_string();
            assert!(error.contains(said), "{word}: {error}");
        }
        assert_eq!(read_zone(" Asia/Shanghai ").expect("known"), Tz::Asia__Shanghai);
    }
}
