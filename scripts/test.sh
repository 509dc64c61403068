#!/usr/bin/env bash
# All tests, on SQLite, MySQL/MariaDB and PostgreSQL; arguments go to `cargo nextest run`.
# Servers that are missing are started for the time of the run (scripts/test-servers.sh).
#
#   scripts/test.sh                        everything
#   scripts/test.sh flow::crash            the tests with this in their name
#   scripts/test.sh -E 'test(/^store::/)'  a filter of nextest
#   scripts/test.sh --quick                rules and SQLite: no server, no browser, no Node.js
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'test: %s\n' "$*" >&2; }

quick=no
if [ "${1:-}" = --quick ]; then
    quick=yes
    shift
fi

# Another version is used when it is installed.
nextest_version=0.9.143

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

# Output of what runs in the background, one file each.
logs=$(mktemp -d /tmp/procession-test-logs.XXXXXX)
background=()
# Servers that `make servers` left running are used and stay; others live as long as this run.
state=.test-servers
if [ ! -d "$state" ]; then
    state=$(mktemp -d /tmp/procession-test.XXXXXX)
fi
stop() {
    local process
    for process in ${background[@]+"${background[@]}"}; do
        kill -- "-$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    if [ "$state" != .test-servers ]; then
        scripts/test-servers.sh stop "$state"
        rmdir "$state" 2>/dev/null || true
    fi
    rm -rf "$logs"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start NAME COMMAND…: runs it in the background, in a process group of its own, its output in a file.
start() {
    local name=$1
    shift
    set -m
    (
        began=$SECONDS
        trap 'printf %s "$((SECONDS - began))" >"$logs/$name.seconds"' EXIT
        "$@"
    ) </dev/null >"$logs/$name" 2>&1 &
    set +m
    background+=("$!")
    declare -g "process_$name=$!"
}

# finish NAME: waits for it; prints its output whole when it failed, else one line.
finish() {
    local process=process_$1 code=0 other rest=()
    wait "${!process}" || code=$?
    for other in "${background[@]}"; do
        if [ "$other" != "${!process}" ]; then rest+=("$other"); fi
    done
    background=(${rest[@]+"${rest[@]}"})
    if [ "$code" -eq 0 ]; then
        say "$1: passed in $(cat "$logs/$1.seconds") s"
    else
        cat "$logs/$1" >&2
        say "$1: FAILED with exit code $code; its output is above"
    fi
    return "$code"
}

# Everything that tests need beside the program. One after the other, because apt-get runs once at a time.
provide_tools() {
    # Pictures are read by the libraries that are to read them, in Node.js.
    scripts/test-node.sh
    # Mails are given to a real server, in Python.
    scripts/test-smtp.sh
    # Users log in with a real directory.
    scripts/test-ldap.sh
    # Secrets are read from a real server.
    scripts/test-vault.sh
    # The console is used in a real browser.
    scripts/test-browser.sh
    scripts/test-servers.sh start "$state" >"$logs/exports"
    # Jobs of pg_cron and pgAgent are imported from the real ones.
    scripts/test-schedulers.sh
    # Executors of XXL-JOB that others wrote; where a registry does not answer, it says what it skips.
    scripts/test-xxl.sh
}

# Returns 1 where the runner cannot be had.
provide_nextest() {
    export PATH=$PWD/target/test-tools/bin:$PATH
    if cargo nextest --version >/dev/null 2>&1; then return; fi
    say "cargo-nextest is missing; building it into target/test-tools, which takes some minutes, once"
    # Without optimization: it waits for tests, and building it is the longer part.
    cargo install --quiet --locked --debug --root target/test-tools cargo-nextest --version "$nextest_version" >&2
}

# The tests that failed in the last run, as a filter of nextest.
failed_tests() {
    awk '/<testcase / { name = $0; sub(/.*<testcase name="/, "", name); sub(/".*/, "", name) }
         /<(failure|error)[ >]/ { printf "%stest(=%s)", (n++ ? " | " : ""), name }' target/nextest/default/junit.xml
}

# Gives way to the tests: with a compiler beside them at the same priority, five tests that assert times failed, and
# two ran into their limit of 300 s.
give_way() { renice -n "$1" -p "$BASHPID" >/dev/null; }
# What `make test` runs beside the tests, each independent of all others.
run_api() {
    give_way 10
    scripts/test-api.sh
}
# That measuring works at all; no figure of a test machine means anything.
run_benches() {
    local bench
    for bench in triggers batches executors scale; do
        cargo bench --profile dev --bench "$bench" -- --smoke
    done
    cargo bench --profile dev --bench core -- --test
}
# A release has no failpoints, so the tests never compile that variant. Any warning of it is an error.
run_release_check() {
    local package options=()
    give_way 19
    # rust-embed has to agree with us about it: its macro expands to other code.
    for package in procession rust-embed rust-embed-utils; do
        options+=(--config "profile.dev.package.$package.debug-assertions=false")
    done
    cargo check --lib --bins "${options[@]}" 2>&1 | tee "$logs/release.warnings"
    ! grep -q '^warning' "$logs/release.warnings"
}

has_nextest=yes
if [ "$quick" = yes ]; then
    provide_nextest || { say "cargo-nextest is missing, and only it knows which tests are quick"; exit 1; }
    cargo nextest run --profile quick "$@"
    exit
fi

start tools provide_tools
provide_nextest || has_nextest=no
if [ "$has_nextest" = yes ]; then
    # From here on nextest asks cargo for nothing, so it does not wait for the builds that run beside the tests.
    cargo nextest list --list-type binaries-only --message-format json >"$logs/binaries.json"
else
    say "cargo-nextest cannot be installed; running cargo test, which is slower"
    cargo test --no-run
fi
finish tools
exports=$(cat "$logs/exports")
eval "$exports"

# A server that dies takes the tests with it that run at that moment; it is started again, and they run once more.
start watch scripts/test-servers.sh watch "$state"

code=0
if [ $# -eq 0 ]; then
    start release_check run_release_check
    start api run_api
fi
if [ "$has_nextest" = yes ]; then
    cargo nextest run --binaries-metadata "$logs/binaries.json" "$@" || code=$?
elif [ $# -gt 0 ]; then
    cargo test "$@" || code=$?
else
    # P-05 makes statements of its own process fail, so no other test may run in it.
    cargo test --no-fail-fast -- --skip trust::p05:: || code=$?
    cargo test --test it -- trust::p05:: || code=$?
fi
if [ -s "$logs/watch" ]; then
    say "a database server of ours died while the tests ran:"
    cat "$logs/watch" >&2
    if [ "$has_nextest" = yes ] && [ "$code" -ne 0 ]; then
        failed=$(failed_tests)
        say "running again, because their server had died: $failed"
        code=0
        cargo nextest run --binaries-metadata "$logs/binaries.json" -E "$failed" || code=$?
    fi
fi
if [ $# -eq 0 ]; then
    finish release_check || code=$?
    finish api || code=$?
    start benches run_benches
    finish benches || code=$?
    # Again on MySQL, and a short list on further versions of the servers.
    scripts/test-versions.sh || code=$?
fi
exit "$code"
