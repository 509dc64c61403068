#!/usr/bin/env bash
# The limits of scripts (tests/it/handler/script_limits.rs) on a kernel that has all of cgroup v2, whatever this machine
# has: Linux 6.1 in user mode, from Debian's package user-mode-linux, which needs no rights. As root of that kernel, and
# as a user to whom a control group was delegated, as systemd does it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'test-cgroups: %s\n' "$*" >&2; }
place=$PWD/target/test-cgroups
kernel=$place/usr/bin/linux.uml
mkdir -p "$place"
if [ ! -x "$kernel" ]; then
    say "fetching user-mode-linux (41 MB)"
    (cd "$place" && apt-get download --quiet user-mode-linux >&2 && dpkg -x user-mode-linux_*.deb . && rm -f ./*.deb)
fi
test=${PROCESSION_TEST_PROGRAM:-$(cargo test --test it --no-run --message-format=json |
    python3 -c 'import json, sys
for line in sys.stdin:
    made = json.loads(line)
    if made.get("target", {}).get("name") == "it" and made.get("executable"):
        print(made["executable"])')}

strip -o "$place/it" "$test"
strip -o "$place/procession" target/debug/procession

cat >"$place/init" <<INIT
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec >/dev/console 2>&1 </dev/null
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 -o nsdelegate none /sys/fs/cgroup
# Nothing of the machine below is written: folders of scripts are here.
mount -t tmpfs tmpfs /run
mkdir -m 1777 /run/tmp
ip link set lo up 2>/dev/null || true
export TMPDIR=/run/tmp PROCESSION_TEST_CGROUPS=required
cd '$PWD'
run() { "\$@" '$test' handler::script_limits --test-threads 1; }
echo "== root"
run env && echo "== root passed"
echo "== delegated"
mkdir -p /sys/fs/cgroup/unit.service
echo '+memory +pids +cpu' >/sys/fs/cgroup/cgroup.subtree_control
for file in . cgroup.procs cgroup.subtree_control cgroup.threads; do
    chown nobody /sys/fs/cgroup/unit.service/\$file
done
# Whatever a checkout keeps from other users: the programs are copied.
mkdir -m 755 /run/programs
cp '$place/it' '$place/procession' /run/programs/
(
    echo 0 >/sys/fs/cgroup/unit.service/cgroup.procs
    exec setpriv --reuid=nobody --clear-groups env PROCESSION_TEST_KEEPER=/run/programs/procession \
        /run/programs/it handler::script_limits --test-threads 1
) && echo "== delegated passed"
echo o >/proc/sysrq-trigger
sleep 5
INIT
chmod +x "$place/init"
log=$place/log
timeout 300 "$kernel" mem=1024M rootfstype=hostfs rootflags=/ rw "init=$place/init" con=null con0=fd:0,fd:1 \
    "umid=procession-$$" quiet </dev/null >"$log" 2>&1 || true
cat "$log"
grep -q '== root passed' "$log" && grep -q '== delegated passed' "$log" ||
    { say "not all passed"; exit 1; }
