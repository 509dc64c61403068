//! Restricts a view to the neighbourhood of one job.

use crate::picture::view::{DagView, PictureNode, PictureNodeKind};

impl DagView {
    /// The codes of the nodes that `word` names: a code, a job's `group.CODE`, or a code shared by jobs of several
    /// groups.
    pub fn find_codes(&self, word: &str) -> Vec<&str> {
        let with = |fits: &dyn Fn(&PictureNode, &str) -> bool| -> Vec<&str> {
            let jobs = self.nodes.iter().filter(|item| item.kind == PictureNodeKind::Job);
            let fitting = jobs.filter(|item| item.group.as_deref().is_some_and(|g| fits(item, g)));
            fitting.map(|item| item.code.as_str()).collect()
        };
        if let Some(item) = self.nodes.iter().find(|item| item.code == word) {
            return vec![&item.code];
        }
        let in_full = with(&|item, group| format!("{group}.{}", item.code) == word);
        match in_full.is_empty() {
            true => with(&|item, group| {
                let code = item.code.as_str();
                code == format!("{group}.{word}") || code == format!("job/{group}/{word}")
            }),
            false => in_full,
        }
    }

    /// The job `code` with its dependencies up to `up` levels and its dependents up to `down` levels; `None` as a
    /// number is unlimited. Returns `None` if the job does not exist.
    pub fn focus(&self, code: &str, up: Option<u32>, down: Option<u32>) -> Option<Self> {
        let at = self.nodes.iter().position(|item| item.code == code)?;
        let mut keep = vec![false; self.nodes.len()];
        reach(at, &self.parents(), up, &mut keep);
        reach(at, &self.children(), down, &mut keep);
        Some(self.keep_only(&keep))
    }
}

fn reach(from: usize, next: &[Vec<usize>], steps: Option<u32>, keep: &mut [bool]) {
    let mut seen = vec![false; next.len()];
    seen[from] = true;
    let mut wave = vec![from];
    let mut step = 0;
    while !wave.is_empty() {
        wave.iter().for_each(|at| keep[*at] = true);
        if steps.is_some_and(|most| step >= most) {
            return;
        }
        step += 1;
        let mut further = Vec::new();
        for &to in wave.iter().flat_map(|at| &next[*at]) {
            if !std::mem::replace(&mut seen[to], true) {
                further.push(to);
            }
        }
        wave = further;
    }
}
