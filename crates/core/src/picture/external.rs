//! Adds jobs of other batches that jobs of this batch depend on.

use crate::domain::id::JobCode;
use crate::domain::job::external::ExternalDependency;
use crate::picture::view::{
    DagView, ForecastTiming, JobState, LinkKind, PictureEdge, PictureNode, PictureNodeKind,
};
use std::collections::{BTreeMap, HashMap};

/// A dependency of a job on another batch, or on one job of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// The awaited batch, or the expression that selects it if it is not known yet.
    pub batch: String,
    /// Group of the awaited batch.
    pub group: String,
    /// The awaited job; `None`: the whole batch.
    pub job: Option<String>,
    /// State of the awaited job or batch, if known.
    pub state: Option<JobState>,
    /// The waiting job.
    pub child: JobCode,
    /// The condition of the dependency.
    pub condition: String,
}

impl From<&ExternalDependency> for External {
    fn from(dependency: &ExternalDependency) -> Self {
        Self {
            batch: dependency.batch.to_string(),
            group: dependency.group.to_string(),
            job: dependency.depends_on.as_ref().map(ToString::to_string),
            state: None,
            child: dependency.job_code.clone(),
            condition: dependency.when.to_string(),
        }
    }
}

impl External {
    /// `202406/month_end/GL_CLOSE`. No job code contains a `/`, so the id is unique.
    fn id(&self) -> String {
        match &self.job {
            Some(job) => format!("{}/{}/{job}", self.batch, self.group),
            None => format!("{}/{}", self.batch, self.group),
        }
    }

    fn as_item(&self) -> PictureNode {
        PictureNode {
            code: self.id(),
            name: format!("{} {}", self.batch, self.job.as_ref().unwrap_or(&self.group)),
            kind: PictureNodeKind::External,
            job_type: String::new(),
            source: None,
            group: None,
            tags: vec![],
            level: 0,
            state: self.state.clone(),
            timing: ForecastTiming::default(),
            members: BTreeMap::new(),
        }
    }
}

impl DagView {
    /// The same view with the awaited jobs of other batches, one node each however many jobs wait for it. A dependency
    /// whose waiting job is not drawn is omitted.
    pub fn with_external(mut self, externals: &[External]) -> Self {
        let codes = self.nodes.iter().enumerate();
        let mut at: HashMap<String, usize> = codes.map(|(i, n)| (n.code.clone(), i)).collect();
        for external in externals {
            let Some(&child) = at.get(external.child.as_str()) else { continue };
            let source = *at.entry(external.id()).or_insert_with(|| {
                self.nodes.push(external.as_item());
                self.nodes.len() - 1
            });
            if self.edges.iter().any(|e| (e.source, e.target) == (source, child)) {
                continue;
            }
            self.edges.push(PictureEdge {
                source,
                target: child,
                kind: LinkKind::External,
                condition: external.condition.clone(),
            });
        }
        self.sorted()
    }
}
