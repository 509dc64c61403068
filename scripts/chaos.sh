#!/usr/bin/env bash
# The long chaos run on each database: two worker processes, jobs of all classes, trouble by seed, and the
# judges' table at the end; then the long stories of schedules, when no database is named. It starts
# private servers of its own.
#
#   scripts/chaos.sh                     SQLite, MySQL/MariaDB, PostgreSQL, one after the other
#   DB=mysql SEED=42 scripts/chaos.sh    one of them (sqlite, mysql, postgres), with the trouble of seed 42
#   DB=mysql SERVER=mysql scripts/chaos.sh   on MySQL 9.7 or another server of scripts/server-versions.sh
#   EFFECTS=2000 scripts/chaos.sh        so many jobs in place of 22,000
#   LOG=FILE scripts/chaos.sh            where everything is written as well; chaos.log unless given
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'chaos: %s\n' "$*" >&2; }
case ${DB:-} in
    '' | sqlite | mysql | postgres) ;;
    *) say "DB=$DB is none of sqlite, mysql, postgres"; exit 2 ;;
esac
for name in SEED EFFECTS; do
    value=${!name:-}
    if [[ -n $value && ! $value =~ ^[0-9]+$ ]]; then
        say "$name=$value is no whole number"
        exit 2
    fi
done
if [ -n "${SERVER:-}" ]; then
    if [ -z "${DB:-}" ]; then say "SERVER=$SERVER needs DB=mysql or DB=postgres"; exit 2; fi
    export PROCESSION_TEST_PRIVATE_SERVER=$SERVER
fi
log=${LOG:-chaos.log}

# The servers of these tests are private and the script that starts them looks for binaries itself; of
# the two it starts only the one that is asked for when the other is named, so both are named here.
state=$(mktemp -d /tmp/procession-chaos.XXXXXX)
stop() {
    scripts/test-servers.sh stop "$state"
    rmdir "$state" 2>/dev/null || true
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
exports=$(scripts/test-servers.sh start "$state")
eval "$exports"

say "building the tests"
cargo test --test it --no-run
code=0
for db in sqlite mysql postgres; do
    if [[ -n ${DB:-} && $DB != "$db" ]]; then continue; fi
    say "on $db; some ten minutes"
    cargo test --test it -- --ignored --exact --nocapture \
        "trust::chaos_tests::long_on_$db" 2>&1 | tee -a "$log" || code=1
done
if [[ -z ${DB:-} ]]; then
    say "schedules: leaders lost, places to die, all at their promised figures; some half an hour"
    cargo test --test it -- --ignored --nocapture --test-threads 1 \
        long_triggers 2>&1 | tee -a "$log" || code=1
fi
say "all of it is in $log"
exit "$code"
