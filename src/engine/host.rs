//! The machine that this process runs on.

/// The name of this machine.
pub fn host_name() -> String {
    // std has no host name; /etc/hostname and $HOSTNAME are what the machines we run on offer.
    let file = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match file.trim() {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}
