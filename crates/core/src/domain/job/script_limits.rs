//! Limits of memory, processes and processor time of a script.
//!
//! The kernel enforces them with a control group (cgroup v2) per script. Without control groups,
//! memory and time are limited per process (`setrlimit`), and processes by the number that the
//! script's user may have.

use crate::domain::id::GroupCode;
use crate::domain::job::script_isolation::ANY_GROUP;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes per MiB.
const MIB: u64 = 1024 * 1024;
/// Accounting period of processor time in microseconds; the kernel's default.
const CPU_PERIOD: u64 = 100_000;

/// Limits of one script. `None`: unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptLimits {
    /// MiB of memory of all its processes together, swap included.
    pub memory_mib: Option<u32>,
    /// Maximum number of processes and threads.
    pub processes: Option<u32>,
    /// Hundredths of one processor: 150 is one and a half.
    pub cpu_percent: Option<u32>,
}

/// Limits of each process of a script (`setrlimit`), used where no control group limits the script
/// as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// MiB of address space per process.
    pub memory_mib: Option<u32>,
    /// Processes of the script's user beyond those at its start; does not bind root.
    pub processes: Option<u32>,
    /// Seconds of processor time per process.
    pub cpu_sec: Option<u64>,
}

/// Smallest memory limit per process in MiB: the process that starts the script is subject to it
/// too.
const LEAST_PROCESS_MEMORY_MIB: u32 = 32;

impl ProcessLimits {
    /// The limits in words; none without limits.
    pub fn describe(&self) -> Option<String> {
        let memory = self.memory_mib.map(|mib| format!("{mib} MiB of memory for each process"));
        let cpu =
            self.cpu_sec.map(|seconds| format!("{seconds} s of a processor for each process"));
        let processes =
            self.processes.map(|number| format!("{number} processes more than its user has"));
        let all: Vec<String> = [memory, processes, cpu].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// Script limits from the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptLimitSettings {
    /// For groups without limits of their own.
    pub default: ScriptLimits,
    /// By group.
    pub by_group: BTreeMap<String, ScriptLimits>,
    /// Use of control groups.
    pub cgroups: CgroupPolicy,
}

/// The setting `script.cgroups`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CgroupPolicy {
    /// Never.
    Off,
    /// Where a control group is available to this process.
    #[default]
    Auto,
    /// Always: a script whose limits cannot be enforced is refused.
    Required,
}

impl CgroupPolicy {
    /// The word in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::Required => "required",
        }
    }

    /// Parses the word in the settings.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "off" => Some(Self::Off),
            "auto" => Some(Self::Auto),
            "required" => Some(Self::Required),
            _ => None,
        }
    }
}

/// A controller of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupController {
    /// Memory controller.
    Memory,
    /// Controller of the number of processes.
    Pids,
    /// Processor-time controller.
    Cpu,
}

impl CgroupController {
    /// All controllers that limits need.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    /// The kernel's name of the controller.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }

    /// Parses the content of `cgroup.controllers` or `cgroup.subtree_control`.
    pub fn parse_list(text: &str) -> Vec<Self> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        Self::ALL.into_iter().filter(|one| words.contains(&one.name())).collect()
    }
}

/// One value to write to one file of a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupSetting {
    /// Name of the file.
    pub file: &'static str,
    /// Value to write.
    pub value: String,
    /// Whether the limit holds without this file, so that a missing file is no error.
    pub is_optional: bool,
}

impl ScriptLimitSettings {
    /// The limits of scripts of this group.
    pub fn choose(&self, group: &GroupCode) -> ScriptLimits {
        self.by_group.get(group.as_str()).copied().unwrap_or(self.default)
    }

    /// The limits in words by group; `*` is all other groups.
    pub fn describe_all(&self) -> BTreeMap<String, String> {
        let words = |limits: &ScriptLimits| limits.describe().unwrap_or_else(|| "none".to_owned());
        let own = self.by_group.iter().map(|(group, limits)| (group.clone(), words(limits)));
        let mut all: BTreeMap<String, String> = own.collect();
        if self.is_any() {
            all.insert(ANY_GROUP.to_owned(), words(&self.default));
        }
        all
    }

    /// Warning for the operator at start-up: the limits that cannot be enforced with these
    /// controllers.
    pub fn warning(
        &self,
        controllers: &[CgroupController],
        obstacle: Option<&str>,
    ) -> Option<String> {
        let own = self.by_group.values().chain([&self.default]);
        let unheld = own.filter_map(|limits| limits.without(controllers).describe());
        let which = unheld.collect::<Vec<_>>().into_iter().next();
        let why = obstacle.unwrap_or("its control group may not limit all of that");
        match (self.cgroups, which) {
            (CgroupPolicy::Required, which) if which.is_some() || obstacle.is_some() => {
                let which = which.map_or(String::new(), |which| format!(" for {which}"));
                Some(format!(
                    "every such script is refused: script.cgroups is \"required\", and there is no control \
                     group{which}: {why}"
                ))
            }
            (_, Some(which)) => Some(format!(
                "scripts as a whole are not held to {which}: {why}; each of their processes is held for itself (memory, \
                 and the processor time that max_cpus gives until the time limit), and max_processes counts those of \
                 the script's user; script.cgroups = \"required\" refuses such scripts"
            )),
            (_, None) => None,
        }
    }

    /// Whether there is any limit.
    pub fn is_any(&self) -> bool {
        let none = ScriptLimits::default();
        self.default != none || self.by_group.values().any(|limits| *limits != none)
    }
}

impl ScriptLimits {
    /// The values to write to a control group with these controllers.
    pub fn cgroup_settings(&self, controllers: &[CgroupController]) -> Vec<CgroupSetting> {
        let setting = |file, value, is_optional| CgroupSetting { file, value, is_optional };
        let has = |one| controllers.contains(&one);
        let mut settings = Vec::new();
        if let Some(mib) = self.memory_mib.filter(|_| has(CgroupController::Memory)) {
            settings.push(setting("memory.max", (u64::from(mib) * MIB).to_string(), false));
            // Swapped memory would not count, and the script would slow down instead of ending.
            settings.push(setting("memory.swap.max", "0".to_owned(), true));
            // Kill all processes of the script, not only one that the script may depend on.
            settings.push(setting("memory.oom.group", "1".to_owned(), true));
        }
        if let Some(processes) = self.processes.filter(|_| has(CgroupController::Pids)) {
            settings.push(setting("pids.max", processes.to_string(), false));
        }
        if let Some(percent) = self.cpu_percent.filter(|_| has(CgroupController::Cpu)) {
            let quota = u64::from(percent) * CPU_PERIOD / 100;
            settings.push(setting("cpu.max", format!("{quota} {CPU_PERIOD}"), false));
        }
        settings
    }

    /// The limits that these controllers do not enforce.
    pub fn without(&self, controllers: &[CgroupController]) -> Self {
        let is_left = |one| !controllers.contains(&one);
        Self {
            memory_mib: self.memory_mib.filter(|_| is_left(CgroupController::Memory)),
            processes: self.processes.filter(|_| is_left(CgroupController::Pids)),
            cpu_percent: self.cpu_percent.filter(|_| is_left(CgroupController::Cpu)),
        }
    }

    /// Per-process limits of a script with this timeout. A share of the processors cannot be
    /// limited per process, so the limit is the processor time that the share amounts to until the
    /// timeout.
    pub fn of_each_process(&self, timeout_sec: u32) -> ProcessLimits {
        let cpu_sec =
            |percent: u32| (u64::from(timeout_sec) * u64::from(percent)).div_ceil(100).max(1);
        ProcessLimits {
            memory_mib: self.memory_mib.map(|mib| mib.max(LEAST_PROCESS_MEMORY_MIB)),
            processes: self.processes,
            cpu_sec: self.cpu_percent.map(cpu_sec),
        }
    }

    /// The limits in words: `memory 512 MiB, 64 processes`. `None` without limits.
    pub fn describe(&self) -> Option<String> {
        let memory = self.memory_mib.map(|mib| format!("memory {mib} MiB"));
        let processes = self.processes.map(|number| format!("{number} processes"));
        let cpu = self.cpu_percent.map(|percent| format!("{} processors", processors(percent)));
        let all: Vec<String> = [memory, processes, cpu].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Message for a script that the kernel killed because of its memory.
    pub fn describe_memory_kill(&self) -> String {
        match self.memory_mib {
            Some(mib) => format!("killed: it used more than {mib} MiB (script.max_memory_mib)"),
            // A limit above the script's own: of the service's control group, or of the machine.
            None => "killed: the memory of the machine, or of the service's own control group, was used up".to_owned(),
        }
    }
}

/// Percent as a number of processors: `150` as `1.5`.
fn processors(percent: u32) -> String {
    let text = format!("{}.{:02}", percent / 100, percent % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The mount point of the cgroup v2 hierarchy and this process's directory in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPlace {
    /// Mount point.
    pub mount: String,
    /// Directory of this process.
    pub own: String,
}

/// Finds the hierarchy in the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`. The error is
/// the reason why there is none.
pub fn find_cgroup_place(mounts: &str, own: &str) -> Result<CgroupPlace, String> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"));
    let path = path.ok_or("the kernel has no cgroup v2 hierarchy")?;
    // `ID PARENT DEVICE ROOT MOUNT OPTIONS [FIELD…] - TYPE SOURCE OPTIONS`
    let mut found = mounts.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let fields: Vec<&str> = left.split(' ').collect();
        let is_ours = right.split(' ').next() == Some("cgroup2");
        is_ours.then_some((*fields.get(3)?, *fields.get(4)?))
    });
    let (root, mount) = found.next().ok_or("the cgroup v2 hierarchy is not mounted")?;
    let root = root.trim_end_matches('/');
    let below = path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let below = below.ok_or_else(|| {
        format!("the control group of this process ({path}) is not in what is mounted at {mount}")
    })?;
    let (mount, below) = (mount.trim_end_matches('/'), below.trim_end_matches('/'));
    Ok(CgroupPlace { mount: mount.to_owned(), own: format!("{mount}{below}") })
}

/// The number after `key` in a kernel file such as `memory.events`; 0 if the key is missing.
pub fn read_event(text: &str, key: &str) -> u64 {
    let number = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ScriptLimits =
        ScriptLimits { memory_mib: Some(512), processes: Some(64), cpu_percent: Some(150) };

    #[test]
    fn limits_are_written_for_the_controllers_that_are_there() {
        let written = |controllers: &[CgroupController]| -> Vec<String> {
            let settings = ALL.cgroup_settings(controllers);
            settings.iter().map(|s| format!("{}={}", s.file, s.value)).collect()
        };
        assert_eq!(
            written(&CgroupController::ALL),
            [
                "memory.max=536870912",
                "memory.swap.max=0",
                "memory.oom.group=1",
                "pids.max=64",
                "cpu.max=150000 100000"
            ]
        );
        assert_eq!(written(&[CgroupController::Pids]), ["pids.max=64"]);
        assert_eq!(written(&[]), Vec::<String>::new());
        let none = ScriptLimits::default().cgroup_settings(&CgroupController::ALL);
        assert_eq!(none, []);
    }

    #[test]
    fn what_is_held_and_what_is_not_is_said() {
        let text = |limits: ScriptLimits| limits.describe().unwrap_or_default();
        assert_eq!(text(ALL), "memory 512 MiB, 64 processes, 1.5 processors");
        assert_eq!(text(ALL.without(&[CgroupController::Memory])), "64 processes, 1.5 processors");
        assert_eq!(ALL.without(&CgroupController::ALL).describe(), None);
        assert_eq!(
            text(ScriptLimits { cpu_percent: Some(5), ..ScriptLimits::default() }),
            "0.05 processors"
        );
        assert_eq!(
            text(ScriptLimits { cpu_percent: Some(200), ..ScriptLimits::default() }),
            "2 processors"
        );
        assert!(ALL.describe_memory_kill().contains("more than 512 MiB (script.max_memory_mib)"));
    }

    #[test]
    fn each_process_is_held_where_no_group_holds_the_script() {
        let of_each = ALL.of_each_process(600);
        let wanted =
            ProcessLimits { memory_mib: Some(512), processes: Some(64), cpu_sec: Some(900) };
        assert_eq!(of_each, wanted);
        assert_eq!(
            of_each.describe().as_deref(),
            Some(
                "512 MiB of memory for each process, 64 processes more than its user has, 900 s of a processor for each process"
            )
        );
        let small = ScriptLimits { memory_mib: Some(4), processes: None, cpu_percent: Some(1) };
        let wanted = ProcessLimits { memory_mib: Some(32), processes: None, cpu_sec: Some(1) };
        assert_eq!(small.of_each_process(10), wanted);
        assert_eq!(ScriptLimits::default().of_each_process(600).describe(), None);
    }

    #[test]
    fn a_group_has_its_own_limits_or_those_of_all() {
        let own = ScriptLimits { processes: Some(5), ..ScriptLimits::default() };
        let settings = ScriptLimitSettings {
            default: ALL,
            by_group: BTreeMap::from([("ar".to_owned(), own)]),
            cgroups: CgroupPolicy::Auto,
        };
        let group = |code: &str| GroupCode::parse(code).expect("a group");
        assert_eq!(settings.choose(&group("ar")), own);
        assert_eq!(settings.choose(&group("gl")), ALL);
        let words = settings.describe_all();
        assert_eq!(words["ar"], "5 processes");
        assert_eq!(words["*"], "memory 512 MiB, 64 processes, 1.5 processors");
        assert!(ScriptLimitSettings::default().describe_all().is_empty());
        assert!(settings.is_any() && !ScriptLimitSettings::default().is_any());
    }

    #[test]
    fn the_place_is_found_in_what_the_kernel_shows() {
        let place = |mounts: &str, own: &str| find_cgroup_place(mounts, own);
        let systemd = "25 30 0:23 / /sys rw,nosuid - sysfs sysfs rw\n\
             31 25 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let found = place(systemd, "0::/system.slice/procession.service\n").expect("a place");
        assert_eq!(found.mount, "/sys/fs/cgroup");
        assert_eq!(found.own, "/sys/fs/cgroup/system.slice/procession.service");
        // A container with a cgroup namespace.
        assert_eq!(place(systemd, "0::/").expect("a place").own, "/sys/fs/cgroup");
        // A container without one: the mount shows only its own part.
        let part = "31 25 0:27 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw";
        assert_eq!(place(part, "0::/docker/ab/x\n").expect("a place").own, "/sys/fs/cgroup/x");
        let why = place(part, "0::/docker/abc\n").expect_err("another container's");
        assert!(why.contains("/docker/abc"), "{why}");
        // Both hierarchies (v1 and v2), as on Debian 10.
        let both = "40 1 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             41 1 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let found = place(both, "4:memory:/x\n0::/\n").expect("a place");
        assert_eq!((found.mount.as_str(), found.own.as_str()), {
            let unified = "/sys/fs/cgroup/unified";
            (unified, unified)
        });
        assert!(place("", "0::/").expect_err("not mounted").contains("not mounted"));
        assert!(place(both, "4:memory:/x\n").expect_err("v1").contains("no cgroup v2"));
    }

    #[test]
    fn events_and_controllers_are_read() {
        let events = "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n";
        assert_eq!((read_event(events, "oom_kill"), read_event(events, "max")), (3, 12));
        assert_eq!(read_event(events, "none"), 0);
        let listed = CgroupController::parse_list("cpuset cpu io memory pids\n");
        assert_eq!(listed, CgroupController::ALL);
        assert_eq!(CgroupController::parse_list("cpuset hugetlb"), []);
    }
}
