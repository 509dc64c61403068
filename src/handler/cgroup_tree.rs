//! The directory of control groups (cgroup v2) in which each script of this process gets its own.
//!
//! The kernel does not let a group that contains processes delegate controllers. So this process
//! moves into a group below the one it was started in, and the groups of its scripts are created
//! beside that.

use crate::domain::job::script_limits::{
    CgroupController, CgroupPolicy, CgroupSetting, ScriptLimits, find_cgroup_place,
};
use crate::handler::process_tree::started;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The group of this process, below the one it was started in.
const OWN: &str = "procession-serve";
/// The parent group of all scripts' groups, beside it.
const SCRIPTS: &str = "procession-scripts";

/// The configured control groups, and what was found.
#[derive(Clone, Debug, Default)]
pub struct CgroupTree {
    policy: CgroupPolicy,
    /// Where to create the group of scripts; without it, where this process was started.
    parent: Option<PathBuf>,
    /// Determined once: the permission to create groups does not change while a process runs.
    means: Arc<OnceCell<Result<CgroupMeans, String>>>,
}

/// The means of this machine to limit scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupMeans {
    /// The mount point of the hierarchy.
    mount: PathBuf,
    /// The group of this process.
    home: PathBuf,
    /// The parent group of all scripts' groups.
    scripts: PathBuf,
    /// The available controllers.
    pub controllers: Vec<CgroupController>,
}

/// The control group of one attempt, as passed to its supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CgroupOrder {
    /// The mount point of the hierarchy, which isolated scripts may only read.
    pub(crate) mount: PathBuf,
    /// The group of the supervisor.
    pub(crate) home: PathBuf,
    /// The group to create.
    pub(crate) folder: PathBuf,
    pub(crate) limits: ScriptLimits,
    pub(crate) controllers: Vec<CgroupController>,
}

impl CgroupTree {
    /// `parent` is a directory of the hierarchy.
    pub fn new(policy: CgroupPolicy, parent: Option<PathBuf>) -> Self {
        Self { policy, parent, means: Arc::default() }
    }

    /// Whether scripts run in control groups.
    pub fn policy(&self) -> CgroupPolicy {
        self.policy
    }

    /// Creates the groups, once. An error is the reason why that is impossible.
    pub async fn find_means(&self) -> Result<CgroupMeans, String> {
        if self.policy == CgroupPolicy::Off {
            return Err("script.cgroups is \"off\"".to_owned());
        }
        let prepare = || async {
            let parent = self.parent.clone();
            let made = tokio::task::spawn_blocking(move || prepare(parent.as_deref())).await;
            made.unwrap_or_else(|e| Err(e.to_string()))
        };
        self.means.get_or_init(prepare).await.clone()
    }
}

impl CgroupMeans {
    /// The control group of a new attempt.
    pub(crate) fn order(&self, limits: ScriptLimits) -> CgroupOrder {
        let own = std::process::id();
        let start = i32::try_from(own).ok().and_then(started).unwrap_or(0);
        let id = uuid::Uuid::new_v4().simple();
        CgroupOrder {
            mount: self.mount.clone(),
            home: self.home.clone(),
            folder: self.scripts.join(format!("{own}-{start}-{id}")),
            limits,
            controllers: self.controllers.clone(),
        }
    }
}

/// Writes a kernel setting.
pub(crate) fn write_setting(folder: &Path, file: &str, value: &str) -> Result<(), String> {
    let path = folder.join(file);
    fs::write(&path, value).map_err(|e| format!("cannot write {value} to {}: {e}", path.display()))
}

/// Creates a group unless it exists.
fn make_group(path: &Path) -> Result<(), String> {
    match fs::create_dir(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            Err(format!("cannot make the control group {}: {e}", path.display()))
        }
        _ => Ok(()),
    }
}

fn prepare(parent: Option<&Path>) -> Result<CgroupMeans, String> {
    let read =
        |path: &str| fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"));
    let place = find_cgroup_place(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?)?;
    let (mount, own) = (PathBuf::from(place.mount), PathBuf::from(place.own));
    let (home, base) = match parent {
        Some(parent) if !parent.starts_with(&mount) => {
            return Err(format!(
                "script.cgroup_parent is {}; name a folder below {}, where the cgroup v2 hierarchy is mounted",
                parent.display(),
                mount.display()
            ));
        }
        Some(parent) => {
            make_group(parent)?;
            // In the group above: a directory created by an operator has only the controllers that
            // its parent delegates.
            let _what_it_hands_on_counts = parent.parent().map(hand_on);
            (own, parent.to_owned())
        }
        None => make_room(own)?,
    };
    if let Err(why) = hand_on(&base) {
        if home.parent() == Some(&base) {
            // Back to the initial state: nothing of this is usable then.
            let _stays_below = write_setting(&base, "cgroup.procs", "0");
            let _in_use = fs::remove_dir(&home);
        }
        return Err(why);
    }
    let scripts = base.join(SCRIPTS);
    make_group(&scripts)?;
    hand_on(&scripts)?;
    remove_left(&scripts);
    let controllers = list_controllers(&scripts, "cgroup.subtree_control");
    if controllers.is_empty() {
        // Version 1 has them, as on hosts that mount both.
        return Err(format!("the control groups in {} can limit nothing", mount.display()));
    }
    // A process of another user may have created the directory.
    let probe = scripts.join(format!("probe-{}", std::process::id()));
    make_group(&probe)?;
    fs::remove_dir(&probe).map_err(|e| format!("cannot remove {}: {e}", probe.display()))?;
    Ok(CgroupMeans { mount, home, scripts, controllers })
}

/// Moves this process to a group below its own, unless it is there already or its group is the
/// root, which may contain processes and delegate. Returns the group of this process, and the group
/// in which scripts' groups can be created.
fn make_room(own: PathBuf) -> Result<(PathBuf, PathBuf), String> {
    if own.file_name().is_some_and(|name| name == OWN) {
        let base = own.parent().map(Path::to_owned);
        return base.map(|base| (own, base)).ok_or_else(|| "it has no group above".to_owned());
    }
    if !own.join("cgroup.type").exists() {
        return Ok((own.clone(), own));
    }
    let home = own.join(OWN);
    make_group(&home)?;
    write_setting(&home, "cgroup.procs", "0")?;
    Ok((home, own))
}

fn list_controllers(group: &Path, file: &str) -> Vec<CgroupController> {
    let text = fs::read_to_string(group.join(file)).unwrap_or_default();
    CgroupController::parse_list(&text)
}

/// Delegates all controllers of this group to the groups below it.
fn hand_on(group: &Path) -> Result<(), String> {
    let has = list_controllers(group, "cgroup.subtree_control");
    let can = list_controllers(group, "cgroup.controllers");
    for one in can.into_iter().filter(|one| !has.contains(one)) {
        let path = group.join("cgroup.subtree_control");
        fs::write(&path, format!("+{}", one.name())).map_err(|e| match e.kind() {
            io::ErrorKind::ResourceBusy => format!(
                "other processes are in the control group {}; run serve as a service of its own (systemd: \
                 Delegate=yes), or name another group in script.cgroup_parent",
                group.display()
            ),
            _ => format!("cannot write +{} to {}: {e}", one.name(), path.display()),
        })?;
    }
    Ok(())
}

/// Removes the groups of dead processes, where no process runs in them any more.
fn remove_left(scripts: &Path) {
    for entry in fs::read_dir(scripts).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_of_dead_process) {
            let _in_use = remove_group(&entry.path());
        }
    }
}

/// By the process id and start time in its name.
fn is_of_dead_process(name: &str) -> bool {
    let mut parts = name.splitn(3, '-');
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (Some(pid), Some(start)) = (number(), number()) else { return false };
    i32::try_from(pid).ok().and_then(started) != Some(start)
}

/// The inner group of an attempt that contains the processes. Their user may write its files, and
/// could remove limits that were set on it.
const PROCESSES: &str = "run";

/// Removes an attempt's group, which has no processes left.
pub(crate) fn remove_group(folder: &Path) -> io::Result<()> {
    match fs::remove_dir(folder.join(PROCESSES)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => fs::remove_dir(folder),
    }
}

/// Creates an attempt's group with its limits; returns the inner group for its processes.
pub(crate) fn make_attempt_group(order: &CgroupOrder) -> Result<PathBuf, String> {
    make_group(&order.folder)?;
    for setting in order.limits.cgroup_settings(&order.controllers) {
        let CgroupSetting { file, value, is_optional } = setting;
        match write_setting(&order.folder, file, &value) {
            Err(why) if !is_optional => return Err(why),
            _ => {}
        }
    }
    let processes = process_folder(order);
    make_group(&processes)?;
    Ok(processes)
}

/// The inner group of an attempt.
pub(crate) fn process_folder(order: &CgroupOrder) -> PathBuf {
    order.folder.join(PROCESSES)
}
