#!/usr/bin/env bash
# Provides what the tests of mails need (tests/smtp): Python with aiosmtpd, in target/test-smtp-venv, and
# there `run`, which starts a program with it. Installs only what is missing or out of date.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'test-smtp: %s\n' "$*" >&2; }
wanted='aiosmtpd==1.4.6'
place=target/test-smtp-venv
mark=$place/.installed

install_python() {
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "$1 is missing; installing ${*:2} with apt-get"
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
            --no-install-recommends "${@:2}"; } >&2
    else
        say "$1 is missing; install ${*:2}"
        exit 1
    fi
}

command -v python3 >/dev/null || install_python Python python3 python3-pip
python=$(python3 -c 'import sys; print(sys.executable)')
state="$wanted for $python"
if [ "$(cat "$mark" 2>/dev/null || true)" = "$state" ]; then
    exit 0
fi

say "installing $wanted into $place"
rm -rf "$place"
mkdir -p "$place"
quiet=(--quiet --disable-pip-version-check --no-input)
# Debian keeps ensurepip in a package of its own; without it pip alone does, in a folder.
if "$python" -c 'import ensurepip, venv' 2>/dev/null && "$python" -m venv "$place/venv" >&2; then
    "$place/venv/bin/python" -m pip install "${quiet[@]}" "$wanted" >&2
    start='exec "$here/venv/bin/python" "$@"'
else
    "$python" -m pip --version >/dev/null 2>&1 || install_python pip python3-pip
    "$python" -m pip install "${quiet[@]}" --target "$place/lib" "$wanted" >&2
    start="PYTHONPATH=\"\$here/lib\" exec \"$python\" \"\$@\""
fi
printf '#!/bin/sh\nhere=$(cd "$(dirname "$0")" && pwd)\n%s\n' "$start" >"$place/run"
chmod +x "$place/run"
"$place/run" -c 'import aiosmtpd'
printf '%s\n' "$state" >"$mark"
