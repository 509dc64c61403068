//! The style sheet of a drawing, for light and dark pages.

use crate::picture::PictureScene;
use crate::picture::facts::class;
use crate::picture::paint::{Paint, paint_of};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Writes the style sheet, with the colours of the states that occur.
pub(super) fn style(scene: &PictureScene<'_>, out: &mut String) -> std::fmt::Result {
    let mut paints: BTreeMap<String, Paint> = BTreeMap::new();
    for item in &scene.view.nodes {
        let status = item.state.as_ref().map(|s| s.status);
        paints.insert(class(item).unwrap_or_else(|| "defined".to_owned()), paint_of(status));
    }
    writeln!(out, "<style>{LIGHT}")?;
    for (word, paint) in &paints {
        writeln!(
            out,
            ".{word}{{fill:{};stroke:{}}}.{word}-bar{{fill:{}}}",
            paint.fill, paint.line, paint.line
        )?;
    }
    // After the colours of the states; otherwise a late job's red border would hide that it is critical.
    writeln!(out, ".critical{{stroke:#1f2933;stroke-width:3}}")?;
    writeln!(out, "@media (prefers-color-scheme:dark){{{DARK}")?;
    for (word, paint) in &paints {
        writeln!(
            out,
            ".{word}{{fill:{};stroke:{}}}.{word}-bar{{fill:{}}}",
            paint.dark_fill, paint.dark_line, paint.dark_line
        )?;
    }
    writeln!(out, ".critical{{stroke:#f5f7fa}}}}</style>")
}

const LIGHT: &str = "
.page{fill:#ffffff}text{fill:#1f2933}
.title{font-size:19px;font-weight:600}.sum,.key{font-size:12px}.sum,.frame-name{fill:#52606d}.name,.state{fill:#323f4b}
.head{font-size:12.5px;font-weight:600}.name,.state{font-size:11px}
.frame{fill:#f5f7fa;stroke:#cbd2d9}.frame-name{font-size:13px;font-weight:600}
.edge{fill:none;stroke:#9aa5b1;stroke-width:1.3}.tip{fill:#9aa5b1}
.bold{stroke:#1f2933;stroke-width:3}.bold-tip{fill:#1f2933}
.other{stroke-dasharray:5 4}.when{font-size:10px;fill:#323f4b;text-anchor:middle;paint-order:stroke;stroke:#ffffff;stroke-width:3px}
.box{stroke-width:1.2}
";

const DARK: &str = "
.page{fill:#14181d}text{fill:#e4e7eb}.sum,.frame-name{fill:#a8b3bf}.name,.state,.when{fill:#cbd2d9}.when{stroke:#14181d}
.frame{fill:#1a2027;stroke:#3e4c59}.edge{stroke:#5f6c7b}.tip{fill:#5f6c7b}
.bold{stroke:#f5f7fa}.bold-tip{fill:#f5f7fa}
";
