#!/usr/bin/env bash
# Tests again, on servers that the main pass of scripts/test.sh does not have: those in tests/passes/mysql.txt on MySQL,
# those in tests/passes/short.txt on MariaDB 11.8, PostgreSQL 13 and PostgreSQL 18.
#
#   scripts/test-versions.sh [NAME…]   mysql, mariadb-11.8, postgres-13, postgres-18; all unless named
#
# The servers of the main pass are named in the environment: PROCESSION_TEST_MYSQL and PROCESSION_TEST_POSTGRES.
# PROCESSION_TEST_REAL_MYSQL names a MySQL server of one's own for the first pass. The others, and MySQL where none is
# named, come from scripts/server-versions.sh. One that cannot be had is reported last, with the reason; it is a failure
# when PROCESSION_TEST_REQUIRE_VERSIONS is 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=scripts/server-functions.sh
. scripts/server-functions.sh

state=$(mktemp -d /tmp/procession-versions-state.XXXXXX)
stop() {
    scripts/server-versions.sh stop "$state"
    rm -rf "$state"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Fills `filters` and `skips` from a list of tests.
read_list() {
    local line
    filters=() skips=()
    while IFS= read -r line; do
        case $line in
            '' | '#'*) ;;
            '!'*) skips+=(--skip "${line#!}") ;;
            *) filters+=("$line") ;;
        esac
    done <"$1"
}

# run_tests NAME VARIABLE URL LIST [--skip WORD]: fails when a test does, when one is ignored, and when there are none.
run_tests() {
    local name=$1 variable=$2 url=$3 list=$4 code=0 passed
    shift 4
    read_list "tests/passes/$list.txt"
    say "$name: the tests of tests/passes/$list.txt"
    # Most of them wait for their server.
    env "$variable=$url" RUST_TEST_THREADS="${RUST_TEST_THREADS:-6}" cargo test --quiet --test it -- "${filters[@]}" "${skips[@]}" "$@" \
        >"$state/$name.log" 2>&1 || code=$?
    passed=$(sed -n 's/^test result: ok\. \([0-9]*\) passed; 0 failed; 0 ignored;.*/\1/p' "$state/$name.log" | tail -1)
    if [ "$code" -ne 0 ] || [ "${passed:-0}" -eq 0 ]; then
        tail -n 400 "$state/$name.log" >&2
        summary+=("$name: FAILED")
        failed=yes
        return
    fi
    summary+=("$name: $passed tests passed on $(version_of "$url")")
}

version_of() { # version_of URL: what the server calls itself
    case $1 in
        postgres*)
            psql -X -A -t -w -d "$1" -c "SELECT 'PostgreSQL ' || current_setting('server_version')" 2>/dev/null \
                || printf 'a PostgreSQL whose version was not asked for: psql is missing'
            ;;
        *)
            mysql_version "$1" | sed 's/^\([0-9.]*\)-MariaDB.*/MariaDB \1/; t; s/^/MySQL /'
            ;;
    esac
}

# pass NAME: starts its server and runs its tests.
pass() {
    local name=$1 url='' code=0
    if [ "$name" = mysql ] && [ -n "${PROCESSION_TEST_REAL_MYSQL:-}" ]; then
        url=$PROCESSION_TEST_REAL_MYSQL
    else
        url=$(scripts/server-versions.sh start "$name" "$state" 2>"$state/$name.start") || code=$?
        cat "$state/$name.start" >&2
    fi
    if [ "$code" -eq 3 ]; then
        summary+=("$name: not run: $(tail -1 "$state/$name.start" | sed 's/^[a-z-]*: //')")
        if [ "${PROCESSION_TEST_REQUIRE_VERSIONS:-0}" = 1 ]; then failed=yes; fi
        return
    elif [ "$code" -ne 0 ]; then
        summary+=("$name: FAILED: its server did not start")
        failed=yes
        return
    fi
    case $name in
        mysql)
            if [[ $(mysql_version "$url" || true) == *MariaDB* ]]; then
                summary+=("$name: FAILED: the server is a MariaDB")
                failed=yes
                return
            fi
            # The figures are measured by hand alone.
            run_tests "$name" PROCESSION_TEST_MYSQL "$url" mysql --skip retention::figures
            ;;
        # Each again on the one server; the other kind was tested in the main pass.
        mariadb-*) run_tests "$name" PROCESSION_TEST_MYSQL "$url" short --skip postgres ;;
        # Procedures have OUT parameters from 14 on.
        postgres-13)
            run_tests "$name" PROCESSION_TEST_POSTGRES "$url" short --skip mysql --skip mariadb \
                --skip postgres_in_out_inout_and_exact_values --skip postgres_routines_are_found_with_the_lock \
                --skip postgres_a_procedure_that_commits_is_refused_by_the_server \
                --skip postgres_in_out_values_have_the_same_text
            ;;
        postgres-*) run_tests "$name" PROCESSION_TEST_POSTGRES "$url" short --skip mysql --skip mariadb ;;
    esac
}

failed='' summary=()
if [ $# -eq 0 ]; then set -- mysql mariadb-11.8 postgres-13 postgres-18; fi
for name in "$@"; do pass "$name"; done
for line in "${summary[@]}"; do say "$line"; done
[ -z "$failed" ]
