#!/usr/bin/env bash
# How fast batches are dispatched and triggers fire: on scratch databases, figures at the end
# (docs/performance.md says what they mean). Servers that are missing are started for the time of the run.
#
#   scripts/bench.sh                               all programs, on SQLite, MySQL/MariaDB and PostgreSQL
#   BENCH=batches scripts/bench.sh                 one of them: batches, triggers, executors
#   SCENARIO=chain-100,fan-1000 BODY=call DB=postgres scripts/bench.sh
#   SCENARIO=burst,idle scripts/bench.sh           scenes of either; --help lists them
#   PROCESSION_BENCH_RTT=5 scripts/bench.sh       with servers that are 5 ms away, there and back
#   BENCH=batches scripts/bench.sh --json --out F  further arguments go to the program
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'bench: %s\n' "$*" >&2; }

batches=() triggers=() executors=()
for scene in $(tr ',' ' ' <<<"${SCENARIO:-}"); do
    case $scene in
        steady | burst | flood | batches | idle | failover) triggers+=("$scene") ;;
        registrations | told | runs | effects) executors+=("$scene") ;;
        *) batches+=("$scene") ;;
    esac
done
programs=${BENCH:-}
case $programs in
    '') # The programs of the scenes that were named; all when none was, but for a body, which only one has.
        if [[ -z ${SCENARIO:-} ]]; then
            programs=batches
            [[ -n ${BODY:-} ]] || programs+=' triggers executors'
        else
            for program in batches triggers executors; do
                declare -n scenes=$program
                if [ ${#scenes[@]} -gt 0 ]; then programs+=" $program"; fi
            done
        fi
        ;;
    batches | triggers | executors) ;;
    *) say "BENCH is batches, triggers or executors, not $programs"; exit 2 ;;
esac

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

say "building with optimisation; the first time that takes minutes"
for program in $programs; do
    declare -n scenes=$program
    arguments=("${scenes[@]}")
    if [[ -n ${DB:-} ]]; then arguments+=(--db "${DB// /,}"); fi
    if [[ $program = batches && -n ${BODY:-} ]]; then arguments+=(--body "${BODY// /,}"); fi
    cargo bench --quiet --bench "$program" -- "${arguments[@]}" "$@"
done
