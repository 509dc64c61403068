#!/usr/bin/env bash
# Provides what the check of pictures needs (tests/node): Node.js with npm, and the libraries at the
# versions of the lock file. Installs only what is missing or out of date.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../tests/node"

say() { printf 'test-node: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
oldest=18

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "Node.js or npm is missing; installing nodejs and npm with apt-get"
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
            --no-install-recommends nodejs npm; } >&2
    else
        die "Node.js or npm is missing; install nodejs and npm, version $oldest or later"
    fi
fi
major=$(node -p 'process.versions.node.split(".")[0]')
if [ "$major" -lt "$oldest" ]; then
    die "Node.js $(node --version) is too old; install version $oldest or later"
fi

# `npm ci` empties node_modules first, so the mark is there only after a full install.
lock=$(node -p 'require("crypto").createHash("sha256").update(require("fs").readFileSync("package-lock.json")).digest("hex")')
mark=node_modules/.installed-from
if [ "$(cat "$mark" 2>/dev/null || true)" != "$lock" ]; then
    say "installing the libraries that read pictures (npm ci)"
    npm ci --ignore-scripts --no-audit --no-fund >&2
    printf '%s\n' "$lock" >"$mark"
fi
