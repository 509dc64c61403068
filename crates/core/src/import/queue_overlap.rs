//! Chooses the overlap policy for schedules whose firings wait for the previous run.

use crate::domain::schedule::TimingWords;
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::overlap::Overlap;
use crate::import::columns::RowPlace;
use crate::import::draft::{Draft, LONGEST_SEC};
use crate::import::note::Level;
use chrono_tz::Tz;

/// Maximum number of firings during one batch, as the checks of schedules permit.
const QUEUE_MAX: i64 = 60;

/// `queue`, as in the source. Where the queue could become long, because a batch may take a month, `queue` would be
/// refused: then `skip`, with a note.
pub(crate) fn queue_or_skip(
    timing: &TimingWords,
    zone: Tz,
    place: RowPlace<'_>,
    draft: &mut Draft,
) -> Overlap {
    let cron = timing.cron.as_deref().and_then(|text| Cron::parse(text).ok());
    let gap = match (timing.every_sec, cron) {
        (Some(sec), _) => Some(sec),
        (None, Some(cron)) => cron.shortest_gap_sec(zone, draft.asked.now),
        (None, None) => None,
    };
    if gap.is_none_or(|gap| gap * QUEUE_MAX >= i64::from(LONGEST_SEC)) {
        return Overlap::Queue;
    }
    draft.note(
        Level::Differs,
        place.at, place.about,
        (
            "there a firing waits while the run before it goes on; here it is left out (overlap: skip), because a queue \
             behind a batch that may take 30 days could grow without end",
            "原系统在上一次未结束时排队;此处跳过(overlap: skip),因为批次最长可达 30 天,队列可能无限增长",
        ),
        (
            "set timeout_sec to what a run may take, and overlap: queue, if each firing has to run",
            "如每次触发都必须执行,请设置合理的 timeout_sec 并改为 overlap: queue",
        ),
    );
    Overlap::Skip
}
