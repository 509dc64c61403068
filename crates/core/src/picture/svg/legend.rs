//! Renders the legend of a drawing, which explains colours and lines.

use crate::domain::job::queue::QueueStatus;
use crate::picture::PictureScene;
use crate::picture::measure::width;
use crate::picture::svg::escaped;
use crate::picture::view::PictureNodeKind;
use std::fmt::Write;

/// The legend: the states that occur, and the meaning of lines.
pub(super) struct Legend {
    entries: Vec<LegendEntry>,
    /// Width of the legend.
    pub(super) width: i64,
}

struct LegendEntry {
    x: i64,
    text: String,
    mark: LegendMark,
}

enum LegendMark {
    State(String),
    Critical,
    Other,
}

impl Legend {
    pub(super) fn of_scene(scene: &PictureScene<'_>) -> Self {
        let lang = scene.wishes.lang;
        let mut marks: Vec<(LegendMark, String)> = Vec::new();
        for status in statuses_drawn(scene) {
            marks.push((LegendMark::State(status.as_str().to_lowercase()), status.to_string()));
        }
        let view = scene.view;
        if view.nodes.iter().any(|item| item.timing.critical == Some(true)) {
            marks.push((LegendMark::Critical, lang.select("critical path", "关键路径").to_owned()));
        }
        if view.nodes.iter().any(|item| item.kind == PictureNodeKind::External) {
            marks.push((LegendMark::Other, lang.select("another batch", "其他批次").to_owned()));
        }
        let mut x = 24;
        let mut entries = Vec::new();
        for (mark, text) in marks {
            let step = 22 + width(&text, 12.0).ceil() as i64 + 22;
            entries.push(LegendEntry { x, text, mark });
            x += step;
        }
        Self { entries, width: x }
    }

    pub(super) fn write(&self, top: i64, out: &mut String) -> std::fmt::Result {
        let y = top + 12;
        for LegendEntry { x, text, mark } in &self.entries {
            match mark {
                LegendMark::State(class) => writeln!(
                    out,
                    "<rect class=\"box {class}\" x=\"{x}\" y=\"{y}\" width=\"16\" height=\"12\" rx=\"3\"/>"
                )?,
                LegendMark::Critical => writeln!(
                    out,
                    "<path class=\"edge bold\" d=\"M{x} {0}L{1} {0}\"/>",
                    y + 6,
                    x + 16
                )?,
                LegendMark::Other => writeln!(
                    out,
                    "<path class=\"edge other\" d=\"M{x} {0}L{1} {0}\"/>",
                    y + 6,
                    x + 16
                )?,
            }
            writeln!(
                out,
                "<text class=\"key\" x=\"{}\" y=\"{}\">{}</text>",
                x + 22,
                y + 10,
                escaped(text)
            )?;
        }
        Ok(())
    }
}

fn statuses_drawn(scene: &PictureScene<'_>) -> Vec<QueueStatus> {
    let drawn = |status: &QueueStatus| {
        scene.view.nodes.iter().any(|i| i.state.as_ref().is_some_and(|s| s.status == *status))
    };
    let mut drawn: Vec<QueueStatus> = QueueStatus::ALL.into_iter().filter(drawn).collect();
    drawn.dedup_by_key(|status| status.as_str());
    drawn
}
