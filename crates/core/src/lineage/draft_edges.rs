//! Computes the dependencies of a draft: the fewest that keep the order (a transitive reduction).

/// A set of job indexes, one bit each.
#[derive(Clone)]
struct JobBitSet(Vec<u64>);

impl JobBitSet {
    fn for_places(count: usize) -> Self {
        Self(vec![0; count / 64 + 1])
    }

    fn contains(&self, at: usize) -> bool {
        self.0[at / 64] & (1 << (at % 64)) != 0
    }

    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn extend(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

/// The fewest dependencies that keep an order. `must_wait(later, earlier)` is called with positions in a sequence; the
/// result holds, for each position, the positions that it waits for, in order.
pub(super) fn fewest_parents(
    count: usize,
    must_wait: impl Fn(usize, usize) -> bool,
) -> Vec<Vec<usize>> {
    let mut above: Vec<JobBitSet> = Vec::with_capacity(count);
    let mut parents = Vec::with_capacity(count);
    for later in 0..count {
        let mut own = JobBitSet::for_places(count);
        let mut kept = Vec::new();
        // From nearest to farthest: predecessors of an earlier one are already implied.
        for earlier in (0..later).rev() {
            if !own.contains(earlier) && must_wait(later, earlier) {
                own.insert(earlier);
                own.extend(&above[earlier]);
                kept.push(earlier);
            }
        }
        kept.reverse();
        above.push(own);
        parents.push(kept);
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce(count: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
        fewest_parents(count, |later, earlier| edges.contains(&(earlier, later)))
    }

    #[test]
    fn an_order_that_a_path_has_is_not_written_again() {
        assert_eq!(reduce(3, &[(0, 1), (1, 2), (0, 2)]), [vec![], vec![0], vec![1]]);
        let diamond = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)];
        assert_eq!(reduce(4, &diamond), [vec![], vec![0], vec![0], vec![1, 2]]);
        assert_eq!(reduce(2, &[]), [Vec::<usize>::new(), vec![]]);
    }

    #[test]
    fn many_places_are_more_than_one_word() {
        let chain: Vec<(usize, usize)> = (1..200).map(|at| (at - 1, at)).collect();
        let parents = fewest_parents(200, |later, earlier| earlier < later);
        assert_eq!(parents, reduce(200, &chain));
        assert_eq!(parents[199], [198]);
    }
}
