#!/usr/bin/env bash
# Makes the files of tests/data/upgrade: metadata databases of an earlier version with a batch that is half done, as the
# tools of each database dump them.
#
#   scripts/upgrade-dumps.sh OLD_PROCESSION FOLDER     OLD_PROCESSION is the program of the earlier version
#
# Servers are named in the environment: PROCESSION_TEST_MYSQL, PROCESSION_TEST_POSTGRES. One that is not named is left out.
# tests/data/upgrade/README.md says what is in the dumps.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
old=$(realpath "$1")
out=$(realpath "$2")
work=$(mktemp -d /tmp/procession-upgrade.XXXXXX)
database=procession_upgrade_dump
serve_pid=
clean() {
    if [ -n "$serve_pid" ]; then kill -9 "$serve_pid" 2>/dev/null || true; fi
    rm -rf "$work"
}
trap clean EXIT
say() { printf '%s\n' "$*" >&2; }

# --- the databases ---------------------------------------------------------------------------------

# run_sql SQL: on the database that the jobs change
run_sql() {
    case $dialect in
        sqlite) sqlite3 -cmd '.timeout 5000' "$work/target.db" "$1" ;;
        mysql) mysql "${mysql_options[@]}" --delimiter // --batch --skip-column-names "$database" --execute "$1" ;;
        postgres) psql --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 "$url" --command "$1" ;;
    esac
}

# metadata SQL: on Procession's own tables
metadata() {
    if [ "$dialect" = sqlite ]; then sqlite3 -cmd '.timeout 5000' "$work/meta.db" "$1"; else run_sql "$1"; fi
}

# The tables and procedures of the jobs' own.
make_target() {
    run_sql "CREATE TABLE effects (job VARCHAR(64) NOT NULL)"
    # `job` is null as long as FX_RATES is to fail; POST_GL takes `work`: seconds, and on SQLite turns of a loop.
    run_sql "CREATE TABLE switches (job VARCHAR(64), work BIGINT NOT NULL)"
    case $dialect in
        sqlite)
            run_sql "INSERT INTO switches VALUES (NULL, 4000000000)"
            run_sql "$(sed -n '/^CREATE TABLE procession_ledger/,/;$/p' "$repo/migrations/sqlite/0003_trust.sql")"
            ;;
        mysql)
            run_sql "INSERT INTO switches VALUES (NULL, 600)"
            run_sql "$(cat "$out/mysql_procedure.sql")"
            ;;
        postgres)
            run_sql "INSERT INTO switches VALUES (NULL, 600)"
            run_sql "CREATE PROCEDURE post_gl(p_batch_no text) LANGUAGE plpgsql AS \$\$ BEGIN
                     PERFORM pg_sleep((SELECT work FROM switches)); INSERT INTO effects VALUES ('POST_GL'); END \$\$"
            ;;
    esac
}

# Ends the session in which POST_GL still runs although the process that called it is gone.
end_orphan() {
    case $dialect in
        sqlite) ;; # It ran in the process.
        mysql)
            run_sql "SELECT id FROM information_schema.processlist WHERE db = '$database' AND id <> CONNECTION_ID()" |
                while read -r id; do run_sql "KILL CONNECTION $id" || true; done
            ;;
        postgres)
            run_sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                     WHERE datname = '$database' AND pid <> pg_backend_pid()" >/dev/null
            ;;
    esac
    sleep 1
}

# Without what only the tool's own client or a later server understands.
dump() {
    case $dialect in
        sqlite)
            sqlite3 "$work/meta.db" .dump >"$out/sqlite.sql"
            sqlite3 "$work/target.db" .dump >"$out/sqlite_target.sql"
            ;;
        mysql)
            mysqldump "${mysql_options[@]}" --skip-comments --skip-add-locks --skip-lock-tables --skip-add-drop-table \
                --single-transaction --default-character-set=utf8mb4 --no-tablespaces --hex-blob "$database" |
                grep --text -v '^/\*M!999999' >"$out/mysql.sql"
            ;;
        postgres)
            pg_dump --no-owner --no-privileges --inserts "$url" |
                grep --text -v -E '^(--$|-- [A-Z]|SET [a-z_]+ = |SELECT pg_catalog.set_config|\\(un)?restrict )' | cat -s >"$out/postgres.sql"
            ;;
    esac
}

# --- the batch -------------------------------------------------------------------------------------

definition() {
    local post_gl='type: PROC, source: ledger, proc_name: post_gl, params: [{ name: p_batch_no, value: "${batch_no}" }]'
    if [ "$dialect" = sqlite ]; then
        post_gl="type: SQL, source: ledger, sql: \"INSERT INTO effects SELECT 'POST_GL' FROM (WITH RECURSIVE c(n) AS
            (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < (SELECT work FROM switches)) SELECT MAX(n) FROM c)\""
    fi
    cat <<YAML
sources: { ledger: { url: "$target_url" } }
groups:
  close: { type: monthly, notify_email: [close@bank.example] }
  risk: { type: monthly, notify_email: [risk@bank.example] }
  checks: { type: monthly, notify_email: [checks@bank.example] }
jobs:
  LOAD_GL: { group: close, type: SQL, source: ledger, tx: ledger, sql: "INSERT INTO effects VALUES ('LOAD_GL')" }
  COUNT_GL: { group: close, type: SCRIPT, depends_on: [LOAD_GL], script: "echo counted; echo ::output rows=12" }
  POST_GL: { group: close, depends_on: [COUNT_GL], tx: ledger, timeout_sec: 3600, $post_gl }
  FX_RATES: { group: close, type: SQL, source: ledger, tx: ledger, depends_on: [LOAD_GL], retry_count: 3,
    retry_delay_sec: 120, sql: "INSERT INTO effects SELECT job FROM switches" }
  REPORT: { group: close, type: SQL, source: ledger, tx: ledger, depends_on: [POST_GL, FX_RATES],
    if: "COUNT_GL.rows == 12", sql: "INSERT INTO effects VALUES ('REPORT')" }
  VALUE: { group: risk, type: SQL, source: ledger, tx: ledger, sql: "INSERT INTO effects VALUES ('VALUE')" }
  VAR: { group: risk, type: SQL, source: ledger, tx: ledger, depends_on: [VALUE, { group: close, job: REPORT }],
    sql: "INSERT INTO effects VALUES ('VAR')" }
  LIMITS: { group: checks, type: SCRIPT, script: "echo limit exceeded; exit 3" }
schedules:
  CLOSE_MONTHLY: { group: close, batch_no: month(-1), cron: "0 0 2 1 * ?", misfire: skip }
YAML
}

# wait_for SQL VALUE: on the metadata
wait_for() {
    local found
    for _ in $(seq 300); do
        found=$(metadata "$1")
        if [ "$found" = "$2" ]; then return; fi
        sleep 0.2
    done
    say "$dialect: never $2 but $found: $1"
    tail -20 "$work/serve.log" >&2
    return 1
}

make_half_done_batch() {
    "$old" migrate --db "$url"
    make_target
    definition >"$work/close.yaml"
    "$old" apply --db "$url" "$work/close.yaml"
    "$old" batch open --db "$url" "$work/close.yaml" --batch-no 202407
    "$old" serve --db "$url" --name etl-old --http off >"$work/serve.log" 2>&1 &
    serve_pid=$!
    local state="SELECT status FROM job_queue WHERE job_code ="
    wait_for "$state 'POST_GL'" RUNNING
    wait_for "$state 'FX_RATES'" RETRY_WAIT
    wait_for "$state 'VALUE'" SUCCESS
    wait_for "$state 'LIMITS'" FAILED
    wait_for "SELECT COUNT(*) > 0 FROM email_notifications WHERE status = 'pending'" "$([ "$dialect" = postgres ] && echo t || echo 1)"
    kill -9 "$serve_pid"
    wait "$serve_pid" 2>/dev/null || true
    serve_pid=
    end_orphan
    run_sql "UPDATE switches SET job = 'FX_RATES', work = 0"
    metadata "UPDATE cluster_node SET host = 'etl-host'"
    metadata "UPDATE audit_log SET host = 'etl-host'"
}

make_one() {
    say "$dialect"
    (cd "$work" && make_half_done_batch)
    dump
    sed -i "s|$work|/tmp/procession-upgrade|g" "$out/$dialect.sql"
}

cat >"$work/procession.toml" <<'TOML'
[notify]
operators = ["noc@bank.example"]
TOML

dialect=sqlite url=sqlite:$work/meta.db target_url=sqlite:$work/target.db
sqlite3 "$work/target.db" 'VACUUM'
make_one

if [ -n "${PROCESSION_TEST_MYSQL:-}" ]; then
    dialect=mysql url=${PROCESSION_TEST_MYSQL%/}/$database target_url=${PROCESSION_TEST_MYSQL%/}/$database
    address=${PROCESSION_TEST_MYSQL##*@}
    mysql_options=(--protocol tcp --user root --host "${address%%:*}" --port "${address##*:}")
    mysql "${mysql_options[@]}" --execute "DROP DATABASE IF EXISTS $database; CREATE DATABASE $database CHARACTER SET utf8mb4"
    make_one
    mysql "${mysql_options[@]}" --execute "DROP DATABASE $database"
    sed -i "s|$url|mysql://root@127.0.0.1:3306/procession_upgrade|g" "$out/mysql.sql"
fi

if [ -n "${PROCESSION_TEST_POSTGRES:-}" ]; then
    server=${PROCESSION_TEST_POSTGRES%/}
    dialect=postgres url=$server/$database target_url=$server/$database
    psql --quiet "$server/postgres" --command "DROP DATABASE IF EXISTS $database" --command "CREATE DATABASE $database"
    make_one
    psql --quiet "$server/postgres" --command "DROP DATABASE $database"
    sed -i "s|$url|postgres://postgres@127.0.0.1:5432/procession_upgrade|g" "$out/postgres.sql"
fi
