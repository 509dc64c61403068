#!/usr/bin/env bash
# How fast the trigger core is: real processes on scratch databases, figures at the end
# (docs/performance.md says what they mean). Servers that are missing are started for the time of the run.
#
#   scripts/bench.sh                               everything, on SQLite, MySQL/MariaDB and PostgreSQL
#   SCENARIO=burst,idle DB=postgres scripts/bench.sh
#   scripts/bench.sh --json                        further arguments go to the program; --help lists them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'bench: %s\n' "$*" >&2; }
state=.test-servers
if [ ! -d "$state" ] && [[ ${DB:-} != sqlite ]]; then
    state=$(mktemp -d /tmp/procession-bench.XXXXXX)
    stop() {
        scripts/test-servers.sh stop "$state"
        rmdir "$state" 2>/dev/null || true
    }
    trap stop EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
fi
if [[ ${DB:-} != sqlite ]]; then
    exports=$(scripts/test-servers.sh start "$state")
    eval "$exports"
fi

arguments=()
if [[ -n ${SCENARIO:-} ]]; then IFS=', ' read -r -a arguments <<<"$SCENARIO"; fi
if [[ -n ${DB:-} ]]; then arguments+=(--db "${DB// /,}"); fi
say "building with optimisation; the first time that takes minutes"
cargo bench --quiet --bench triggers -- "${arguments[@]}" "$@"
