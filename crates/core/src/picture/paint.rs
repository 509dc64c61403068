//! Colours of states, for shapes with colours.

use crate::domain::job::queue::QueueStatus;

/// Colours of a state: a fill light enough for black text, and a line dark enough for a white page. On a dark page the
/// same hues are used the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paint {
    pub(super) fill: &'static str,
    pub(super) line: &'static str,
    pub(super) dark_fill: &'static str,
    pub(super) dark_line: &'static str,
}

const fn paint(
    fill: &'static str,
    line: &'static str,
    dark_fill: &'static str,
    dark_line: &'static str,
) -> Paint {
    Paint { fill, line, dark_fill, dark_line }
}

/// Green: done; yellow: needs attention; red: failed; blue: active; grey: not started or never.
pub(super) fn paint_of(status: Option<QueueStatus>) -> Paint {
    let Some(status) = status else { return paint("#ffffff", "#7b8794", "#252b33", "#8c97a4") };
    match status {
        QueueStatus::Success => paint("#b7e4b7", "#2f8f4e", "#1e3a29", "#4cb872"),
        QueueStatus::Warning | QueueStatus::Forced => {
            paint("#f6e58d", "#b58900", "#3d3515", "#d9b83a")
        }
        QueueStatus::Failed | QueueStatus::Timeout => {
            paint("#f5a3a3", "#c62828", "#4a2020", "#ef6461")
        }
        QueueStatus::Killed | QueueStatus::Killing => {
            paint("#e0b0d5", "#8e3a80", "#3d2339", "#cf7fc0")
        }
        QueueStatus::Unknown => paint("#f0932b", "#a85a00", "#523208", "#f2a654"),
        QueueStatus::UpstreamFailed => paint("#f8d7d7", "#d38484", "#33272a", "#a86a6a"),
        QueueStatus::Running => paint("#a9d3f5", "#1f77c9", "#17334d", "#58a6ec"),
        QueueStatus::Queued | QueueStatus::RetryWait => {
            paint("#d6eaf8", "#6ba4cf", "#1f2d3a", "#6d96b8")
        }
        QueueStatus::Held => paint("#d7ccc8", "#8d6e63", "#352d29", "#ab8d82"),
        QueueStatus::Skipped | QueueStatus::NotTaken => {
            paint("#e0e0e0", "#9e9e9e", "#2f2f2f", "#8a8a8a")
        }
        QueueStatus::Pending => paint("#f5f5f5", "#9aa5b1", "#272d35", "#77828e"),
    }
}

/// The fill colour only.
pub(super) fn fill_colour(status: Option<QueueStatus>) -> &'static str {
    paint_of(status).fill
}
