//! Determines which limits apply to a script and what enforces them: a control group of its own, or
//! the limits of its processes and its user.

use crate::domain::job::outcome::Stream;
use crate::domain::job::script_limits::{
    CgroupController, CgroupPolicy, ProcessLimits, ScriptLimits,
};
use crate::handler::cgroup_tree::{CgroupMeans, CgroupOrder};
use crate::handler::{AttemptTask, Context};

/// The effective limits of one attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldLimits {
    /// The configured limits.
    pub(crate) limits: ScriptLimits,
    /// Its control group.
    pub(crate) cgroup: Option<CgroupOrder>,
    /// The limits of each process, where no control group limits the script.
    pub(crate) of_each_process: ProcessLimits,
    /// Whether the script must not run without them.
    pub(crate) is_required: bool,
}

impl HeldLimits {
    /// The effective limits on this machine. Missing ones are written to the attempt's log; an
    /// error is the reason why the attempt is refused.
    pub(crate) async fn find_limits(task: &AttemptTask, ctx: &Context) -> Result<Self, String> {
        let limits = ctx.options.script_limits.choose(&task.job.group);
        let tree = &ctx.options.script_cgroups;
        let means = tree.find_means().await;
        let held: &[CgroupController] = means.as_ref().map_or(&[], |means| &means.controllers);
        let left = limits.without(held);
        let is_required = tree.policy() == CgroupPolicy::Required;
        if is_required {
            refuse_unheld(left, &means)?;
        }
        let unheld = ScriptLimits { processes: None, ..left };
        if let Some(which) = unheld.describe() {
            let why = explain(&means);
            ctx.log.add_line(
                Stream::System,
                format!("limits not held for the script as a whole: {which}: {why}"),
            );
        }
        let cgroup = means.ok().map(|means| means.order(limits));
        let of_each_process = left.of_each_process(task.job.timeout_sec);
        Ok(Self { limits, cgroup, of_each_process, is_required })
    }

    /// The effective limits, for the log.
    pub(crate) fn describe(&self) -> Option<String> {
        let held = self.cgroup.as_ref().map_or(&[][..], |cgroup| &cgroup.controllers);
        let unheld = self.limits.without(held);
        let by_group = ScriptLimits {
            memory_mib: self.limits.memory_mib.filter(|_| unheld.memory_mib.is_none()),
            processes: self.limits.processes.filter(|_| unheld.processes.is_none()),
            cpu_percent: self.limits.cpu_percent.filter(|_| unheld.cpu_percent.is_none()),
        };
        let by_group = by_group.describe().map(|text| format!("{text} (control group)"));
        let of_each = self.of_each_process.describe();
        let all: Vec<String> = [by_group, of_each].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

fn refuse_unheld(left: ScriptLimits, means: &Result<CgroupMeans, String>) -> Result<(), String> {
    let which = left.describe();
    if means.is_ok() && which.is_none() {
        return Ok(());
    }
    let which = which.map_or(String::new(), |which| format!(" for {which}"));
    Err(format!(
        "script.cgroups is \"required\", and there is no control group{which}: {}; docs/security.md says what it takes",
        explain(means)
    ))
}

/// What prevents the use of control groups.
fn explain(means: &Result<CgroupMeans, String>) -> String {
    match means {
        Err(why) => why.clone(),
        Ok(means) => {
            let has = |one: &CgroupController| means.controllers.contains(one);
            let missing = CgroupController::ALL.into_iter().filter(|one| !has(one));
            let missing: Vec<&str> = missing.map(CgroupController::name).collect();
            format!("the controllers {} are not in its cgroup v2 hierarchy", missing.join(", "))
        }
    }
}
