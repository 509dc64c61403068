//! The time zone of another scheduler's times of day: a name, an offset, or what its server reports
//! about its clock.

use crate::domain::schedule::read_zone;
use crate::domain::source::scheduler_tables::SchedulerServer;
use crate::domain::time::Millis;
use crate::domain::time::local_time::ahead_sec;
use chrono_tz::Tz;

const HOUR_SEC: i64 = 3_600;

/// Zones without daylight-saving changes, for offsets that are not whole hours.
const UNEVEN: [(i64, Tz); 7] = [
    (12_600, Tz::Asia__Tehran),
    (16_200, Tz::Asia__Kabul),
    (19_800, Tz::Asia__Kolkata),
    (20_700, Tz::Asia__Kathmandu),
    (23_400, Tz::Asia__Yangon),
    (31_500, Tz::Australia__Eucla),
    (34_200, Tz::Australia__Darwin),
];

/// A zone with a constant offset of this many seconds from UTC.
pub(crate) fn zone_of_offset(ahead: i64) -> Option<Tz> {
    if ahead == 0 {
        return Some(Tz::UTC);
    }
    if ahead % HOUR_SEC == 0 {
        // These names have POSIX signs: a zone ahead of UTC has a minus.
        let hours = -ahead / HOUR_SEC;
        return format!("Etc/GMT{hours:+}").parse().ok();
    }
    UNEVEN.iter().find(|(offset, _)| *offset == ahead).map(|(_, zone)| *zone)
}

/// Reads an IANA name, or an offset such as `+08:00`.
pub(crate) fn read_zone_word(word: &str) -> Option<Tz> {
    let word = word.trim();
    if let Ok(zone) = read_zone(word) {
        return Some(zone);
    }
    let (sign, rest) = match word.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (hours.parse::<i64>().ok()?, minutes.parse::<i64>().ok()?);
    let ahead = hours.checked_mul(HOUR_SEC)?.checked_add(minutes.checked_mul(60)?)?;
    zone_of_offset(sign * ahead)
}

/// The time zone of a server, and whether only its current offset is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerZone {
    /// The zone given by the user, or reported by the server.
    Known(Tz),
    /// Only the current offset is known; that it never changes is an assumption.
    ByOffset(Tz),
    /// Nothing is known.
    Unknown,
}

impl ServerZone {
    /// The zone of the server's clock; the user's option takes precedence.
    pub(crate) fn find_zone(server: &SchedulerServer, asked: Option<Tz>, now: Millis) -> Self {
        let named = server.zone.as_deref().and_then(read_zone_word);
        let offset = server.utc_offset_sec.map(i64::from);
        if let Some(zone) = asked {
            return Self::Known(zone);
        }
        // A name that contradicts the clock would be a guess that is known to be wrong.
        if let Some(zone) =
            named.filter(|zone| offset.is_none_or(|offset| ahead_sec(now, *zone) == offset))
        {
            return Self::Known(zone);
        }
        match offset.and_then(zone_of_offset) {
            Some(Tz::UTC) => Self::Known(Tz::UTC),
            Some(zone) => Self::ByOffset(zone),
            None => Self::Unknown,
        }
    }

    /// The zone; UTC if nothing is known.
    pub(crate) fn zone(self) -> Tz {
        match self {
            Self::Known(zone) | Self::ByOffset(zone) => zone,
            Self::Unknown => Tz::UTC,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_789_948_800_000);

    #[test]
    fn offsets_are_zones_that_never_change() {
        for (word, zone) in [
            ("Asia/Shanghai", Some(Tz::Asia__Shanghai)),
            ("+08:00", Some(Tz::Etc__GMTMinus8)),
            ("-05:00", Some(Tz::Etc__GMTPlus5)),
            ("+00:00", Some(Tz::UTC)),
            ("+05:30", Some(Tz::Asia__Kolkata)),
            ("+05:15", None),
            ("SYSTEM", None),
            ("", None),
        ] {
            assert_eq!(read_zone_word(word), zone, "{word}");
        }
        for (offset, zone) in UNEVEN {
            assert_eq!(ahead_sec(NOW, zone), offset, "{zone}");
        }
    }

    #[test]
    fn a_server_is_where_its_clock_says() {
        let server = |zone: Option<&str>, utc_offset_sec| SchedulerServer {
            zone: zone.map(str::to_owned),
            utc_offset_sec,
            ..SchedulerServer::default()
        };
        let find = |zone, offset, asked| ServerZone::find_zone(&server(zone, offset), asked, NOW);
        assert_eq!(
            find(Some("Asia/Shanghai"), Some(28_800), None),
            ServerZone::Known(Tz::Asia__Shanghai)
        );
        assert_eq!(find(Some("UTC"), Some(28_800), None), ServerZone::ByOffset(Tz::Etc__GMTMinus8));
        assert_eq!(find(None, Some(0), None), ServerZone::Known(Tz::UTC));
        assert_eq!(find(None, None, None), ServerZone::Unknown);
        assert_eq!(find(None, Some(0), Some(Tz::Asia__Tokyo)), ServerZone::Known(Tz::Asia__Tokyo));
    }
}
