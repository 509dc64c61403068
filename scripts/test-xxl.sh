#!/usr/bin/env bash
# Provides what the tests among executors of XXL-JOB that others wrote need (tests/xxl-clients): pyxxl and
# Flask-XXLJob (Python), xxl-job (Node.js), xxljob-sdk-rs (Rust), each at the version of its lock file, below
# target/xxl-clients. Installs only what is missing or out of date. What a registry that does not answer keeps
# from us is skipped, and said; anything else that fails is an error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'test-xxl: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
hosts=$PWD/tests/xxl-clients
place=$PWD/target/xxl-clients
mkdir -p "$place"

sum() { cat "$@" | git hash-object --stdin; }

# The tests look for this mark: without it a client is not used.
is_ready() { [ "$(cat "$place/$1/.installed" 2>/dev/null || true)" = "$2" ]; }
ready() { printf '%s\n' "$2" >"$place/$1/.installed"; }

skip() {
    rm -f "$place/$1/.installed"
    say "SKIPPED: the tests with $2: its registry does not answer, and they are not installed here yet"
}

in_python() {
    local python state quiet=(--quiet --disable-pip-version-check --no-input --retries 1 --timeout 15)
    python=$(command -v python3 || true)
    if [ -z "$python" ] || ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
            say "Python with venv is missing; installing python3 and python3-venv with apt-get"
            { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
                --no-install-recommends python3 python3-venv; } >&2
            python=$(command -v python3)
        else
            die "Python with venv is missing; install python3 and python3-venv"
        fi
    fi
    python=$("$python" -c 'import sys; print(sys.executable)')
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "$python is too old for the clients in Python; install 3.11 or later"
    state="$(sum "$hosts/requirements.txt") for $python"
    if is_ready python "$state"; then return; fi
    say "installing pyxxl and Flask-XXLJob (pip)"
    rm -rf "$place/python"
    "$python" -m venv "$place/python" >&2
    if "$place/python/bin/python" -m pip install "${quiet[@]}" --require-hashes -r "$hosts/requirements.txt" >&2
    then
        ready python "$state"
    elif "$place/python/bin/python" -m pip download "${quiet[@]}" --no-deps -d "$place/python/asked" pyxxl==0.4.8 >&2
    then
        die "the registry of Python answers, but pip cannot install tests/xxl-clients/requirements.txt"
    else
        skip python "pyxxl and Flask-XXLJob"
    fi
}

in_node() {
    local state
    # npm is there in `make test`: scripts/test-node.sh has seen to it.
    command -v npm >/dev/null || die "npm is missing; run scripts/test-node.sh"
    state="$(sum "$hosts/npm/package.json" "$hosts/npm/package-lock.json") for $(node --version)"
    if is_ready npm "$state"; then return; fi
    say "installing xxl-job (npm ci)"
    rm -rf "$place/npm"
    mkdir -p "$place/npm"
    cp "$hosts/npm/package.json" "$hosts/npm/package-lock.json" "$place/npm/"
    if (cd "$place/npm" && npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 >&2); then
        ready npm "$state"
    elif (cd "$place" && npm view xxl-job@0.1.7 version --fetch-retries=1 >&2); then
        die "the registry of npm answers, but npm cannot install tests/xxl-clients/npm/package-lock.json"
    else
        skip npm xxl-job
    fi
}

in_rust() {
    local state manifest=$hosts/rust/Cargo.toml
    state="$(sum "$manifest" "$hosts/rust/Cargo.lock" "$hosts/rust/src/main.rs") for $(cargo --version)"
    if is_ready rust "$state"; then return; fi
    # 270 crates: a minute and a half of two processors, once.
    say "building the client of xxljob-sdk-rs (cargo)"
    if ! cargo fetch --quiet --locked --manifest-path "$manifest" >&2; then
        # `--locked` also refuses a lock file that does not fit, which no registry is to blame for.
        cargo info --quiet xxljob-sdk-rs@0.1.4 >/dev/null 2>&1 &&
            die "the registry of crates answers, but cargo cannot fetch what tests/xxl-clients/rust/Cargo.lock names"
        skip rust xxljob-sdk-rs
        return
    fi
    mkdir -p "$place/rust"
    rm -f "$place/rust/.installed"
    cargo build --quiet --locked --offline --manifest-path "$manifest" --target-dir "$place/rust" >&2
    ready rust "$state"
}

in_python
in_node
in_rust
