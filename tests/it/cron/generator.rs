//! Cron expressions by the dice, from a seed: every form the grammar has, alone and together.

/// A small generator of numbers; the same seed gives the same ones on any machine.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.below(all.len() as u64)).expect("small")]
    }
}

const MONTHS: [&str; 12] =
    ["JAN", "feb", "Mar", "APR", "may", "JUN", "JUL", "AUG", "sep", "OCT", "NOV", "DEC"];
const WEEK: [&str; 7] = ["SUN", "mon", "TUE", "Wed", "THU", "FRI", "SAT"];

struct Kind {
    low: u64,
    high: u64,
    step_max: u64,
    names: &'static [&'static str],
}

const fn kind(low: u64, high: u64, step_max: u64, names: &'static [&'static str]) -> Kind {
    Kind { low, high, step_max, names }
}

const SIXTY: Kind = kind(0, 59, 59, &[]);
const HOUR: Kind = kind(0, 23, 23, &[]);
const MONTH_DAY: Kind = kind(1, 31, 31, &[]);
const MONTH: Kind = kind(1, 12, 12, &MONTHS);
const WEEKDAY: Kind = kind(1, 7, 7, &WEEK);
const CLASSIC_WEEKDAY: Kind = kind(0, 6, 7, &WEEK);

impl Dice {
    fn value(&mut self, kind: &Kind) -> String {
        let value = self.between(kind.low, kind.high);
        if !kind.names.is_empty() && self.below(2) == 0 {
            return kind.names[usize::try_from(value - kind.low).expect("small")].to_owned();
        }
        value.to_string()
    }

    /// `a`, `a-b` (which may wrap around), `a/n`, `*/n`, `a-b/n`.
    fn item(&mut self, kind: &Kind) -> String {
        let step = self.between(1, kind.step_max);
        match self.below(8) {
            0..=2 => self.value(kind),
            3 => format!("{}-{}", self.value(kind), self.value(kind)),
            4 => format!("{}/{step}", self.value(kind)),
            5 => format!("*/{step}"),
            6 => format!("{}-{}/{step}", self.value(kind), self.value(kind)),
            _ => format!("{}-{}", self.value(kind), self.value(kind)),
        }
    }

    fn list(&mut self, kind: &Kind) -> String {
        let count = *self.of(&[1, 1, 1, 2, 3]);
        (0..count).map(|_| self.item(kind)).collect::<Vec<_>>().join(",")
    }

    /// A list, or `*` once in a while.
    fn field(&mut self, kind: &Kind, star_of_ten: u64) -> String {
        if self.below(10) < star_of_ten { "*".to_owned() } else { self.list(kind) }
    }

    fn month_days(&mut self) -> String {
        let back = self.between(1, 30);
        let day = self.between(1, 31);
        match self.below(14) {
            0 => "L".to_owned(),
            1 => format!("L-{back}"),
            2 => "LW".to_owned(),
            3 | 4 => format!("L-{back}W"),
            5 | 6 => format!("{day}W"),
            7 => format!("{day},L"),
            8 => format!("{}W,LW,L-{back}", self.between(1, 31)),
            9 => "*".to_owned(),
            _ => self.list(&MONTH_DAY),
        }
    }

    fn week_days(&mut self) -> String {
        let day = self.value(&WEEKDAY);
        let nth = self.between(1, 5);
        match self.below(12) {
            0 => "L".to_owned(),
            1 | 2 => format!("{day}L"),
            3 | 4 => format!("{day}#{nth}"),
            5 => format!("{day}#{nth},{}L", self.value(&WEEKDAY)),
            6 => "*".to_owned(),
            _ => self.list(&WEEKDAY),
        }
    }

    fn years(&mut self) -> String {
        let (a, b) = (self.between(2020, 2035), self.between(2020, 2035));
        match self.below(5) {
            0 => "*".to_owned(),
            1 => a.to_string(),
            2 => format!("{}-{}", a.min(b), a.max(b)),
            3 => format!("{a}/{}", self.between(1, 9)),
            _ => format!("{a},{b}"),
        }
    }

    /// Times near those at which clocks are changed come up often.
    fn time(&mut self) -> (String, String, String) {
        let second = match self.below(10) {
            0..=6 => "0".to_owned(),
            7 => self.value(&SIXTY),
            _ => self.list(&SIXTY),
        };
        let minute = self.field(&SIXTY, 1);
        let hour = match self.below(10) {
            0..=3 => self.below(4).to_string(),
            4 => "0-3".to_owned(),
            5 | 6 => "*".to_owned(),
            7 => (*self.of(&["*/1", "0-23", "5-4", "0/1", "*/2", "1/2", "22-2"])).to_owned(),
            _ => self.list(&HOUR),
        };
        (second, minute, hour)
    }

    pub(crate) fn quartz(&mut self) -> String {
        let (second, minute, hour) = self.time();
        let month = self.field(&MONTH, 6);
        let (of_month, of_week) = if self.below(2) == 0 {
            (self.month_days(), "?".to_owned())
        } else {
            ("?".to_owned(), self.week_days())
        };
        let year = if self.below(6) == 0 { format!(" {}", self.years()) } else { String::new() };
        format!("{second} {minute} {hour} {of_month} {month} {of_week}{year}")
    }

    pub(crate) fn classic(&mut self) -> String {
        let (_, minute, hour) = self.time();
        let (of_month, month) = (self.field(&MONTH_DAY, 4), self.field(&MONTH, 6));
        let of_week = match self.below(6) {
            0 => (*self.of(&["7", "0", "5-7", "1,7", "fri-sun"])).to_owned(),
            1 | 2 => "*".to_owned(),
            _ => self.list(&CLASSIC_WEEKDAY),
        };
        format!("{minute} {hour} {of_month} {month} {of_week}")
    }
}
