//! The reasons why a run waits before it is sent to an executor.

use crate::domain::executor::LogId;
use crate::domain::text::lang::Lang;
use std::fmt;

/// The reason for the wait. The row of the job stores its English `Display`, which is parsed back for display in
/// another language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunWait {
    /// An earlier run of the job, which is not over (SERIAL_EXECUTION).
    Turn(LogId),
    /// An earlier run of the job, which is being stopped because this one covers it (COVER_EARLY).
    Cover(LogId),
    /// An earlier run of the job, which was ordered to stop and whose executor has not reported its end.
    Confirmation(LogId),
}

/// The three texts in English and Chinese; `#` stands for the run.
const WORDS: [(&str, &str); 3] = [
    ("its turn: run # of this job is not over", "轮到它：本作业的运行 # 尚未结束"),
    ("the end of run # of this job, which it covers", "被它覆盖的本作业的运行 # 结束"),
    (
        "run # of this job was ordered to stop and its executor has not reported its end; when it is \
         certain that it has stopped, rerun, force or skip the job that is UNKNOWN",
        "本作业的运行 # 已下令终止，但执行器尚未上报其结束；确认其已停止后，请对状态为 UNKNOWN 的作业执行重跑、强制成功或跳过",
    ),
];

impl RunWait {
    fn parts(self) -> (usize, LogId) {
        match self {
            Self::Turn(earlier) => (0, earlier),
            Self::Cover(earlier) => (1, earlier),
            Self::Confirmation(earlier) => (2, earlier),
        }
    }

    /// Parses the stored text.
    pub fn parse(said: &str) -> Option<Self> {
        let number = |(words, _): &(&str, &str)| {
            let (head, tail) = words.split_once('#')?;
            let number = said.strip_prefix(head)?.strip_suffix(tail)?;
            Some(LogId(number.parse().ok()?))
        };
        let [turn, cover, confirmation] = &WORDS;
        number(turn)
            .map(Self::Turn)
            .or_else(|| number(cover).map(Self::Cover))
            .or_else(|| number(confirmation).map(Self::Confirmation))
    }

    /// The reason as a sentence.
    pub fn words(self, lang: Lang) -> String {
        let (which, earlier) = self.parts();
        let (en, zh) = WORDS[which];
        lang.select(en, zh).replace('#', &earlier.to_string())
    }

    /// Translates the stored text.
    pub fn said_in(lang: Lang, said: &str) -> String {
        Self::parse(said).map_or_else(|| said.to_owned(), |wait| wait.words(lang))
    }
}

impl fmt::Display for RunWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.words(Lang::En))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_row_says_is_read_back() {
        for wait in [
            RunWait::Turn(LogId(17)),
            RunWait::Cover(LogId(4_000_000_000)),
            RunWait::Confirmation(LogId(3)),
        ] {
            assert_eq!(RunWait::parse(&wait.to_string()), Some(wait));
            let zh = RunWait::said_in(Lang::Zh, &wait.to_string());
            assert!(zh.contains("本作业的运行") && !zh.contains("run"), "{zh}");
            assert_eq!(RunWait::said_in(Lang::En, &wait.to_string()), wait.to_string());
        }
        for other in
            ["", "process 17 (sh) of an earlier start", "its turn: run x of this job is not over"]
        {
            assert_eq!(RunWait::parse(other), None, "{other}");
            assert_eq!(RunWait::said_in(Lang::Zh, other), other);
        }
    }
}
