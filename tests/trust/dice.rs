//! Numbers that are the same for the same seed (SplitMix64).

/// A source of them.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From `low` to below `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }

    /// One of these, each as often as its weight says.
    pub(crate) fn pick<T: Copy>(&mut self, weighted: &[(u64, T)]) -> T {
        let mut left = self.between(0, weighted.iter().map(|(weight, _)| weight).sum());
        for (weight, what) in weighted {
            match left.checked_sub(*weight) {
                None => return *what,
                Some(rest) => left = rest,
            }
        }
        weighted[0].1
    }
}
