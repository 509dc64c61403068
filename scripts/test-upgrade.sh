#!/usr/bin/env bash
# Two versions on one database: the program of an earlier version beside the present one, on what tests/data/upgrade has.
# Without a server only SQLite is tried; servers are named by PROCESSION_TEST_MYSQL and PROCESSION_TEST_POSTGRES.
#
#   scripts/test-upgrade.sh OLD_PROCESSION NEW_PROCESSION
#
# 1. The new one migrates the half done batch and ends it, each effect once.
# 2. Commands of the old one are refused by the new tables.
# 3. Back: the metadata are restored from the backup made before the migration, and the old one ends the batch. What took
#    effect since is in the ledger of the data source and does not run again.
# 4. While the old one serves, the new one neither migrates nor serves; `migrate --wait` goes on once the old one has left.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
old=$(realpath "$1")
new=$(realpath "$2")
work=$(mktemp -d /tmp/procession-test-upgrade.XXXXXX)
database=procession_test_upgrade
serve_pid=
stop_serve() {
    if [ -z "$serve_pid" ]; then return; fi
    kill -TERM "$serve_pid" 2>/dev/null || true
    wait "$serve_pid" 2>/dev/null || true
    serve_pid=
}
clean() {
    stop_serve
    rm -rf "$work"
}
trap clean EXIT
cd "$work"
unset PROCESSION_DB PROCESSION_SERVER

fail() {
    printf '%s: %s\n' "$dialect" "$*" >&2
    exit 1
}

# --- the databases ---------------------------------------------------------------------------------

load_metadata() {
    case $dialect in
        sqlite)
            rm -f meta.db*
            sed "s|/tmp/procession-upgrade/target.db|$work/target.db|g" "$repo/tests/data/upgrade/sqlite.sql" | sqlite3 meta.db
            ;;
        mysql)
            mysql "${mysql_options[@]}" --execute "DROP DATABASE IF EXISTS $database"
            mysql "${mysql_options[@]}" --execute "CREATE DATABASE $database CHARACTER SET utf8mb4"
            sed "s|mysql://root@127.0.0.1:3306/procession_upgrade|$url|g" "$repo/tests/data/upgrade/mysql.sql" |
                mysql "${mysql_options[@]}" "$database"
            mysql "${mysql_options[@]}" --delimiter // "$database" \
                --execute "$(cat "$repo/tests/data/upgrade/mysql_procedure.sql")"
            ;;
        postgres)
            psql --quiet "$server/postgres" --command "DROP DATABASE IF EXISTS $database WITH (FORCE)" \
                --command "CREATE DATABASE $database" 2>/dev/null
            sed "s|postgres://postgres@127.0.0.1:5432/procession_upgrade|$url|g" "$repo/tests/data/upgrade/postgres.sql" |
                psql --quiet --set ON_ERROR_STOP=1 "$url" >/dev/null
            ;;
    esac
}

# On SQLite the jobs' own tables are in another file, which a restored backup of the metadata leaves as it is.
load_all() {
    if [ "$dialect" = sqlite ]; then
        rm -f target.db*
        sqlite3 target.db <"$repo/tests/data/upgrade/sqlite_target.sql"
    fi
    load_metadata
}

effects() {
    local sql="SELECT job FROM effects ORDER BY job"
    case $dialect in
        sqlite) sqlite3 target.db "$sql" ;;
        mysql) mysql "${mysql_options[@]}" --batch --skip-column-names "$database" --execute "$sql" ;;
        postgres) psql --quiet --tuples-only --no-align "$url" --command "$sql" ;;
    esac | paste --serial --delimiters ' '
}

# --- the steps -------------------------------------------------------------------------------------

# refused WORDS PROGRAM ARGUMENT…: it ends with 2 and says these words
refused() {
    local words=$1 said code=0
    shift
    said=$(timeout 60 "$@" --db "$url" 2>&1) || code=$?
    [ "$code" = 2 ] || fail "exit code $code of $*: $said"
    case $said in *"$words"*) ;; *) fail "$* says: $said" ;; esac
}

serve() {
    "$1" serve --http off --name "$2" --db "$url" >"serve-$2.log" 2>&1 &
    serve_pid=$!
}

end_batch() {
    local group
    for group in close risk; do
        timeout 120 "$1" batch wait 202407 --group "$group" --quiet --db "$url" >/dev/null || fail "$group does not end well"
    done
    [ "$(effects)" = "FX_RATES LOAD_GL POST_GL REPORT VALUE VAR" ] || fail "effects: $(effects)"
}

try_one() {
    load_all
    refused "run: procession migrate" "$new" serve --http off
    timeout 60 "$new" migrate --db "$url"
    serve "$new" new
    end_batch "$new"
    stop_serve
    local arguments
    for arguments in "serve --http off" "batch list" "migrate" "run $work/any.yaml --batch-no 202408"; do
        # shellcheck disable=SC2086
        refused "a newer Procession has migrated it; use that version, or restore a backup" "$old" $arguments
    done
    echo "$dialect: migrated, the batch ended, the old version is refused"

    load_metadata
    serve "$old" back
    end_batch "$old"
    stop_serve
    echo "$dialect: went back with a backup, nothing ran twice"

    load_all
    serve "$old" old
    for _ in $(seq 100); do
        if "$old" node list --db "$url" | grep -q ' old '; then break; fi
        sleep 0.1
    done
    refused "node old, process $serve_pid" "$new" migrate
    refused "run: procession migrate" "$new" serve --http off
    timeout 60 "$new" migrate --wait 50 --db "$url" >wait.log 2>&1 &
    local waiting=$!
    sleep 1
    kill -0 "$waiting" || fail "migrate did not wait: $(cat wait.log)"
    stop_serve
    wait "$waiting" || fail "$(cat wait.log)"
    serve "$new" new
    end_batch "$new"
    stop_serve
    echo "$dialect: migrated once the old version had left, the batch ended"
}

echo "jobs: { A: { type: NOOP } }" >any.yaml
dialect=sqlite url=sqlite:$work/meta.db
try_one
if [ -n "${PROCESSION_TEST_MYSQL:-}" ]; then
    dialect=mysql url=${PROCESSION_TEST_MYSQL%/}/$database
    address=${PROCESSION_TEST_MYSQL##*@}
    mysql_options=(--protocol tcp --user root --host "${address%%:*}" --port "${address##*:}")
    try_one
    mysql "${mysql_options[@]}" --execute "DROP DATABASE $database"
fi
if [ -n "${PROCESSION_TEST_POSTGRES:-}" ]; then
    server=${PROCESSION_TEST_POSTGRES%/}
    dialect=postgres url=$server/$database
    try_one
    psql --quiet "$server/postgres" --command "DROP DATABASE $database"
fi
