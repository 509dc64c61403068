#!/usr/bin/env bash
# All tests, on SQLite, MySQL/MariaDB and PostgreSQL; arguments go to `cargo test`.
# Servers that are missing are started for the time of the run (scripts/test-servers.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'test: %s\n' "$*" >&2; }

if ! command -v cargo >/dev/null; then
    say "cargo is missing; install Rust with rustup, version $(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml) or newer"
    exit 1
fi
# SQLite and the TLS library are compiled from C.
if ! command -v cc >/dev/null; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "a C compiler is missing; installing build-essential with apt-get"
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
            --no-install-recommends build-essential; } >&2
    else
        say "a C compiler is missing; install build-essential (Debian, Ubuntu), gcc (Fedora) or"
        say "run xcode-select --install (macOS)"
        exit 1
    fi
fi

# Pictures are read by the libraries that are to read them, in Node.js.
scripts/test-node.sh
# Mails are given to a real server, in Python.
scripts/test-smtp.sh
# The console is used in a real browser.
scripts/test-browser.sh
# Executors of XXL-JOB that others wrote; where a registry does not answer, it says what it skips.
scripts/test-xxl.sh

# Servers that `make servers` left running are used and stay; others live as long as this run.
state=.test-servers
if [ ! -d "$state" ]; then
    state=$(mktemp -d /tmp/procession-test.XXXXXX)
    stop() {
        scripts/test-servers.sh stop "$state"
        rmdir "$state" 2>/dev/null || true
    }
    trap stop EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
fi
exports=$(scripts/test-servers.sh start "$state")
eval "$exports"

cargo test "$@"
# Crashes, stalls and cuts need places at which the program breaks, which no release has.
if [ $# -eq 0 ]; then
    # P-05 makes statements of this very process fail, so it has one of its own.
    cargo test --features failpoints --test trust -- --skip p05::
    cargo test --features failpoints --test trust -- p05::
    # Every route is held against what the API says of itself.
    scripts/test-api.sh
    # That the measuring works at all; no figure of a test machine means anything.
    cargo bench --profile dev --bench triggers -- --smoke
    cargo bench --profile dev --bench batches -- --smoke
    cargo bench --profile dev --bench executors -- --smoke
    cargo bench --profile dev --bench scale -- --smoke
    cargo bench --profile dev --bench core -- --test
fi
# Again on MySQL, and a short list on further versions of the servers.
if [ $# -eq 0 ]; then scripts/test-versions.sh; fi
