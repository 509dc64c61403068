#!/usr/bin/env bash
# Crates held against deny.toml.
#
#   scripts/deny.sh                licences, sources, banned crates: needs no network
#   scripts/deny.sh advisories     known vulnerabilities: fetches RustSec's database, and fails when it cannot
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'deny: %s\n' "$*" >&2; }

export PATH=$PWD/target/test-tools/bin:$PATH
if ! command -v cargo-deny >/dev/null; then
    say "cargo-deny is missing; install it: cargo install --locked cargo-deny"
    exit 1
fi
if [ "${1:-}" != advisories ]; then
    exec cargo deny check licenses sources bans
fi
code=0
cargo deny check advisories || code=$?
if [ "$code" -ne 0 ]; then
    say "advisories: FAILED with exit code $code. Either a crate has one (above), or the database could not be fetched:"
    say "it is a Git repository on another host. Then nothing is known about vulnerabilities; run this where it can be had."
fi
exit "$code"
