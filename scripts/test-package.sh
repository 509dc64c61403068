#!/usr/bin/env bash
# Installs the packages in a Debian that debootstrap makes, runs the README's first batch there as the user `procession`,
# and removes them again; then the .rpm in the same place.
#
#   scripts/test-package.sh            makes the packages first (scripts/package.sh, some 20 minutes on two cores)
#   scripts/test-package.sh FOLDER     takes those of this folder
#
# Wants root, debootstrap and rpm (Debian packages), and a mirror of Debian, which is the machine's own unless DEBIAN_MIRROR
# names one. DEBIAN_SUITE is the release, bookworm unless said.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'test-package: %s\n' "$*" >&2; }
fail() { say "FAILED: $*"; exit 1; }
passed=0
holds() {
    local what=$1
    shift
    "$@" || fail "$what: $*"
    passed=$((passed + 1))
    say "ok: $what"
}

[ "$(id -u)" = 0 ] || fail "root is needed, for chroot"
for tool in debootstrap rpm dpkg-deb; do
    command -v "$tool" >/dev/null || fail "$tool is missing (apt-get install debootstrap rpm dpkg)"
done
packages=${1:-}
if [ -z "$packages" ]; then
    scripts/package.sh
    packages=target/packages
fi
one() { local found=("$packages"/$1); [ -e "${found[0]}" ] && [ ${#found[@]} = 1 ] || fail "not one $1 in $packages"; printf '%s' "${found[0]}"; }
deb=$(one '*.deb') rpm=$(one '*.rpm') archive=$(one '*.tar.gz')
version=$(dpkg-deb --field "$deb" Version)

holds "the digests of SHA256SUMS" bash -c "cd '$packages' && sha256sum --quiet --check SHA256SUMS"

root=$(mktemp -d /tmp/procession-root.XXXXXX)
chmod 0755 "$root"
finish() {
    umount "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$root"
}
trap finish EXIT

mirror=${DEBIAN_MIRROR:-$(awk '$1 == "deb" && $2 ~ /^http/ { print $2; exit } $1 == "URIs:" { print $2; exit }' \
    /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true)}
# passwd comes along for useradd; so it does on every Debian that a person installs.
debootstrap --variant=minbase "${DEBIAN_SUITE:-bookworm}" "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 ||
    fail "debootstrap: $(tail -3 "$root.log")"
rm -f "$root.log"
mount -t proc proc "$root/proc"
say "$(sed -n 's/^PRETTY_NAME=//p' "$root/etc/os-release"), glibc $(chroot "$root" ldd --version | sed -n '1s/.* //p')"
mkdir "$root/packages"
cp "$deb" "$rpm" "$root/packages/"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"; }
as_service() {
    chroot --userspec=procession:procession "$root" env -i PATH=/usr/bin:/bin LANG=C.UTF-8 HOME=/var/lib/procession \
        PROCESSION_CONFIG=/etc/procession/procession.toml sh -c "cd /var/lib/procession && $1"
}
mode() { [ "$(chroot "$root" stat --format='%U:%G %a' "$1")" = "$2" ]; }
absent() { [ ! -e "$root$1" ]; }
present() { [ -s "$root$1" ]; }

# What a package of either kind must do, once it is installed.
check_installed() {
    local kind=$1 said
    said=$(inside procession --version)
    holds "$kind: procession --version says $said" test "$said" = "procession $version"
    holds "$kind: the settings are root's, and the service may read them" mode /etc/procession/procession.toml "root:procession 640"
    holds "$kind: the folder of passwords is root's alone" mode /etc/procession/secrets "root:root 700"
    holds "$kind: the folder of data is the service's alone" mode /var/lib/procession "procession:procession 700"
    holds "$kind: a manual page" bash -c "gzip -dc '$root/usr/share/man/man1/procession-run.1.gz' | grep -q '^.TH'"
    holds "$kind: bash completes" inside bash -c '. /usr/share/bash-completion/completions/procession && complete -p procession >/dev/null'
    holds "$kind: examples and bill of materials" present /usr/share/doc/procession/procession.cdx.json.gz
    if as_service "procession run /usr/share/doc/procession/examples/month-end-close.yaml --batch-no 202407" >"$root/run.txt" 2>&1
    then tail -1 "$root/run.txt" >&2; else cat "$root/run.txt" >&2; fail "$kind: the first batch"; fi
    holds "$kind: the first batch succeeds" grep -q '24 SUCCESS' "$root/run.txt"
    holds "$kind: its rows are in the service's folder" mode /var/lib/procession/procession.db "procession:procession 600"
    said=$(as_service "procession batch list" | grep -c 202407 || true)
    holds "$kind: batch list shows it" test "$said" = 1
    check_serve "$kind"
}

# The command of the unit, as its user: it answers, and a TERM ends it.
check_serve() {
    local kind=$1 pid
    chroot --userspec=procession:procession "$root" env -i PATH=/usr/bin:/bin LANG=C.UTF-8 \
        PROCESSION_CONFIG=/etc/procession/procession.toml env --chdir=/var/lib/procession \
        procession serve --quiet --http 127.0.0.1:18088 >"$root/serve.txt" 2>&1 &
    pid=$!
    local ready=no
    for _ in $(seq 100); do
        if as_service "procession health --ready --http 127.0.0.1:18088" >"$root/health.txt" 2>&1; then ready=yes; break; fi
        sleep 0.2
    done
    [ "$ready" = yes ] || { cat "$root/serve.txt" "$root/health.txt" >&2; kill "$pid"; fail "$kind: serve is not ready"; }
    kill -TERM "$pid"
    holds "$kind: serve is ready, and ends on TERM with 0" wait "$pid"
}

check_unit() {
    local kind=$1 unit=$2
    if command -v systemd-analyze >/dev/null; then
        local words
        # It looks for the program on this machine.
        mkdir "$root/verify"
        sed "s|^ExecStart=/usr/bin/procession|ExecStart=$root/usr/bin/procession|" "$root$unit" >"$root/verify/procession.service"
        words=$(systemd-analyze verify "$root/verify/procession.service" 2>&1 | grep 'procession.service\|Unknown' || true)
        rm -r "$root/verify"
        holds "$kind: systemd-analyze verify finds nothing" test -z "$words"
    else
        say "NOT CHECKED: the unit, because systemd-analyze is missing"
    fi
    holds "$kind: nothing is enabled" absent /etc/systemd/system/multi-user.target.wants/procession.service
}

# ---- .deb
holds "deb: installs" inside dpkg --install "/packages/$(basename "$deb")" >&2
check_installed deb
check_unit deb /lib/systemd/system/procession.service
echo '# mine' >>"$root/etc/procession/procession.toml"
holds "deb: installs over itself" inside dpkg --install "/packages/$(basename "$deb")" >&2
holds "deb: changed settings stay" grep -q '^# mine' "$root/etc/procession/procession.toml"
holds "deb: removes" inside dpkg --remove procession >&2
holds "deb: the program is gone" absent /usr/bin/procession
holds "deb: settings stay until it is purged" present /etc/procession/procession.toml
holds "deb: purges" inside dpkg --purge procession >&2
holds "deb: the settings are gone" absent /etc/procession/procession.toml
holds "deb: data stays" present /var/lib/procession/procession.db
left=$(chroot "$root" dpkg --list procession 2>/dev/null | grep -c '^[a-z]i\|^rc' || true)
holds "deb: dpkg knows it no more" test "$left" = 0

# ---- .rpm, in the same place: Debian has what it needs, but no database of rpm that says so.
rm -rf "$root/var/lib/procession"
inside userdel procession 2>/dev/null || true
holds "rpm: lists its files" test "$(rpm --query --package --list "$rpm" 2>/dev/null | grep -c '^/usr/bin/procession$')" = 1
rpmdb=/var/lib/rpm
mkdir -p "$root$rpmdb"
rpm --root "$root" --dbpath "$rpmdb" --initdb
# Where rpm itself changes its root: Debian's rpm reads its macros from the machine, and runs the scripts of the package inside.
in_rpm() { rpm --root "$root" --dbpath "$rpmdb" "$@"; }
holds "rpm: installs" in_rpm --install --nodeps "$rpm" >&2
check_installed rpm
check_unit rpm /usr/lib/systemd/system/procession.service
changed=$(in_rpm --verify --nodeps procession 2>&1 || true)
holds "rpm: rpm --verify finds nothing: $changed" test -z "$changed"
holds "rpm: erases" in_rpm --erase procession >&2
holds "rpm: the program is gone" absent /usr/bin/procession
holds "rpm: data stays" present /var/lib/procession/procession.db

# ---- .tar.gz: for any place
mkdir "$root/opt/procession"
tar --extract --gzip --file "$archive" --directory "$root/opt/procession" --strip-components 1 --no-same-owner
inside sh -c 'mkdir /tmp/try && cd /tmp/try && /opt/procession/procession run /opt/procession/dag-examples/month-end-close.yaml --batch-no 202407' \
    >"$root/run.txt" 2>&1 || { cat "$root/run.txt" >&2; fail "archive: the first batch"; }
holds "archive: the first batch succeeds" grep -q '24 SUCCESS' "$root/run.txt"

say "$passed checks passed on $(sed -n 's/^PRETTY_NAME=//p' "$root/etc/os-release"): $(cd "$packages" && du -h --apparent-size -- *.deb *.rpm *.tar.gz | tr '\t\n' ' ;')"
