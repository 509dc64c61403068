#!/usr/bin/env bash
# The long run of the fuzz targets, with libFuzzer; the short one is part of `make test` (tests/fuzz).
#
#   scripts/fuzz.sh                        every target, 60 s each
#   TARGET=cron SECONDS_EACH=600 scripts/fuzz.sh
#
# It needs cargo-fuzz and a nightly toolchain. Where one is missing it says so and fails: without coverage
# PROCESSION_FUZZ_SEC=600 PROCESSION_FUZZ_SEED=7 cargo nextest run -E 'test(/^fuzz::/)' is what can be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'fuzz: %s\n' "$*" >&2; }

instead="without coverage: PROCESSION_FUZZ_SEC=60 cargo nextest run -E 'test(/^fuzz::/)'"
if ! cargo fuzz --version >/dev/null 2>&1; then
    say "cargo-fuzz is missing; install it: cargo install --locked cargo-fuzz. $instead"
    exit 1
fi
if ! cargo +nightly --version >/dev/null 2>&1; then
    say "there is no nightly toolchain; install one: rustup toolchain install nightly --profile minimal. $instead"
    exit 1
fi

# The crates of the program, in the same versions; what libFuzzer needs is added.
cp Cargo.lock fuzz/Cargo.lock
each=${SECONDS_EACH:-60}
targets=${TARGET:-$(sed -n 's/^name = "\(.*\)"/\1/p' fuzz/Cargo.toml | grep -v '^procession')}
failed=()
for target in $targets; do
    corpus=fuzz/corpus/$target
    mkdir -p "$corpus"
    say "$target: $each s; what it finds is in fuzz/artifacts/$target"
    # No sanitizer: our code has no unsafe blocks. New inputs go to the first folder, ours stay as they are. An input that
    # takes a second of processor time fails by itself; -timeout ends one that never ends.
    cargo +nightly fuzz run --sanitizer none "$target" "$corpus" "tests/data/fuzz/$target" -- \
        -max_total_time="$each" -max_len=16384 -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 || failed+=("$target")
done
if [ "${#failed[@]}" -gt 0 ]; then
    say "FAILED: ${failed[*]}. Fix it, and put the input into tests/data/fuzz/TARGET, where a test runs it for good."
    exit 1
fi
