//! Messages between an XXL-JOB admin and its executors, as plain data.
//!
//! There are four dialects (`XxlDialect`). Reading accepts all of them at once: fields that a version lacks may be
//! missing, unknown fields are ignored, and `null` means absent. Writing uses exactly one.

mod reply;
mod to_admin;
mod to_executor;

pub use reply::{LogPage, Reply, read_log};
pub use to_admin::{Callback, Registry, callbacks, read_callbacks};
pub use to_executor::{JobAsk, LogAsk, RunAsk};

/// The header with the access token; header names are case-insensitive.
pub const TOKEN_HEADER: &str = "xxl-job-access-token";
/// The header with the app name of the executor, required since 3.5.
pub const APP_NAME_HEADER: &str = "xxl-job-appname";
/// The only registration group of executors.
pub const EXECUTOR_GROUP: &str = "EXECUTOR";

/// Success.
pub const OK: i32 = 200;
/// Failure or refusal.
pub const FAIL: i32 = 500;
/// The run timed out.
pub const TIMED_OUT: i32 = 502;

/// The protocol versions of XXL-JOB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XxlDialect {
    /// 2.2.
    D0,
    /// 2.3 to 3.2.
    D1,
    /// 3.3 to 3.4; an executor sends the same as in `D1`.
    D2,
    /// 3.5, not released at the time of writing.
    D3,
}

impl XxlDialect {
    /// Every dialect, oldest first.
    pub const ALL: [Self; 4] = [Self::D0, Self::D1, Self::D2, Self::D3];

    /// The oldest version with this dialect.
    pub fn since(self) -> &'static str {
        match self {
            Self::D0 => "2.2",
            Self::D1 => "2.3",
            Self::D2 => "3.3",
            Self::D3 => "3.5",
        }
    }

    /// The dialect of a version such as `2.4.1`.
    pub fn of_version(version: &str) -> Option<Self> {
        let mut parts = version.split('.');
        let number = |part: Option<&str>| part.and_then(|text| text.parse::<u32>().ok());
        let (major, minor) = (number(parts.next())?, number(parts.next()).unwrap_or(0));
        match (major, minor) {
            (2, 2) => Some(Self::D0),
            (2, 3..) | (3, 0..=2) => Some(Self::D1),
            (3, 3 | 4) => Some(Self::D2),
            (3, 5..) => Some(Self::D3),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::XxlDialect;

    #[test]
    fn a_version_has_its_dialect() {
        for (version, dialect) in [
            ("2.2.0", Some(XxlDialect::D0)),
            ("2.3", Some(XxlDialect::D1)),
            ("2.5.0", Some(XxlDialect::D1)),
            ("3.2.0", Some(XxlDialect::D1)),
            ("3.3.1", Some(XxlDialect::D2)),
            ("3.4.2", Some(XxlDialect::D2)),
            ("3.5.0-SNAPSHOT", Some(XxlDialect::D3)),
            ("2.1.2", None),
            ("latest", None),
        ] {
            assert_eq!(XxlDialect::of_version(version), dialect, "{version}");
        }
        for dialect in XxlDialect::ALL {
            assert_eq!(XxlDialect::of_version(dialect.since()), Some(dialect));
        }
    }
}
