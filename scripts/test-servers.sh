#!/usr/bin/env bash
# Finds or starts the MySQL/MariaDB and PostgreSQL servers that the tests run against.
#
#   scripts/test-servers.sh start [FOLDER]   prints `export PROCESSION_TEST_…=URL`, one per server
#   scripts/test-servers.sh stop  [FOLDER]   stops and removes what `start` with this FOLDER started
#   scripts/test-servers.sh watch [FOLDER]   until it is stopped: starts a server of ours that has died again, on the
#                                            same port and data, and prints when, and the end of its log
#
# FOLDER remembers what was started; `.test-servers` in the checkout unless given.
#
# For each server the first of these that works is used:
#   1. PROCESSION_TEST_MARIADB / PROCESSION_TEST_POSTGRES, when set. A server that is named there and
#      does not answer is an error: falling back would test something else than was asked for.
#   2. A server on the usual port of 127.0.0.1 that lets root (postgres) in without a password.
#   3. A private server, from installed binaries, on a free port of 127.0.0.1, data under /tmp.
#   4. As root on a machine with apt-get: the packages are installed, then as 3.
# Otherwise it says what to install and fails. A missing server is a failure, never a skip.
#
# PROCESSION_TEST_MYSQL may name a MariaDB, which then counts as PROCESSION_TEST_MARIADB, or a MySQL, which is handed on as
# PROCESSION_TEST_REAL_MYSQL to scripts/test-versions.sh. What is printed for PROCESSION_TEST_MYSQL is the server of the main
# pass: the tests read that variable alone.
#
# Settings: PROCESSION_TEST_DEFAULT_MYSQL_PORT (3306), PROCESSION_TEST_DEFAULT_POSTGRES_PORT (5432),
#           PROCESSION_TEST_SERVER_WAIT (seconds to wait for a server of ours; 60).
set -euo pipefail
shopt -s inherit_errexit # bash 4.4; without it a failure inside $(…) would be lost

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mysql_port=${PROCESSION_TEST_DEFAULT_MYSQL_PORT:-3306}
postgres_port=${PROCESSION_TEST_DEFAULT_POSTGRES_PORT:-5432}
wait_seconds=${PROCESSION_TEST_SERVER_WAIT:-60}

# shellcheck source=scripts/server-functions.sh
. "$repo/scripts/server-functions.sh"

# --- installing ------------------------------------------------------------------------------------

apt_updated=''
install_package() { # install_package PACKAGE WHAT
    if ! am_root || ! command -v apt-get >/dev/null; then
        say "the tests need $2 and found none."
        say "  Debian, Ubuntu:  sudo apt-get install $1"
        say "  Fedora:          sudo dnf install ${1/postgresql/postgresql-server}"
        say "  macOS:           brew install ${1%-server}"
        die "or name a running server in $3=URL"
    fi
    say "installing $1 with apt-get"
    if [ -z "$apt_updated" ]; then
        apt-get update -q >&2 || die "apt-get update failed; install $1 by hand or set $3"
        apt_updated=yes
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$1" >&2 \
        || die "apt-get could not install $1; install it by hand or set $3"
}

# --- start and stop --------------------------------------------------------------------------------

without_password() { printf '%s' "$1" | sed -E 's#//([^:/@]*):[^@]*@#//\1:***@#'; }

# The folder for data, remembered in STATE. Under /tmp, because a server that runs as another user
# cannot enter a checkout in somebody's home, and a socket's path has about a hundred characters.
data_folder() {
    local data
    if [ ! -f "$1/data" ]; then
        mkdir -p "$1"
        data=$(mktemp -d /tmp/procession-servers.XXXXXX)
        chmod 711 "$data"
        printf '%s\n' "$data" >"$1/data"
    fi
    cat "$1/data"
}

# provide STATE NAME VARIABLE USUAL_URL PACKAGE WHAT: prints the line to export
provide() {
    local state=$1 name=$2 variable=$3 usual=$4 package=$5 what=$6 url data
    url=${!variable:-}
    if [ -n "$url" ]; then
        "${name}_answers" "$url" || die "$variable is set, but no server lets us in at \
$(without_password "$url"); start it, correct the variable, or unset it"
        say "$name: the one that $variable names"
    elif "${name}_answers" "$usual"; then
        url=$usual
        say "$name: the one that runs at $url"
    elif [ -f "$state/$name.url" ] && "${name}_answers" "$(cat "$state/$name.url")"; then
        url=$(cat "$state/$name.url")
        say "$name: the private one that still runs at $url"
    else
        "${name}_installed" || install_package "$package" "$what" "$variable"
        "${name}_installed" || die "$package is installed, but brought no server program we know"
        data=$(data_folder "$state")
        "stop_$name" "$data"
        rm -rf "${data:?}/$name"
        url=$("start_$name" "$data")
        printf '%s\n' "$url" >"$state/$name.url"
        say "$name: a private one at $url"
    fi
    printf 'export %s=%q\n' "$variable" "$url"
}

# Sorts out which server PROCESSION_TEST_MYSQL names; prints the line to export when it is a MySQL.
sort_mysql() {
    local given=${PROCESSION_TEST_MYSQL:-} version
    if [ -n "$given" ]; then
        mysql_answers "$given" || die "PROCESSION_TEST_MYSQL is set, but no server lets us in at \
$(without_password "$given"); start it, correct the variable, or unset it"
        version=$(mysql_version "$given")
        if [ -n "$version" ] && [[ $version != *MariaDB* ]]; then
            printf 'export PROCESSION_TEST_REAL_MYSQL=%q\n' "$given"
        fi
    fi
}

start() {
    local lines real
    real=$(sort_mysql)
    if [ -n "$real" ]; then unset PROCESSION_TEST_MYSQL; fi
    if [ -n "${PROCESSION_TEST_MARIADB:-}" ]; then export PROCESSION_TEST_MYSQL=$PROCESSION_TEST_MARIADB; fi
    if [ ! -d "$1" ]; then trap 'stop "$state"' EXIT; fi # all or nothing of what is new stays
    lines=$(
        provide "$1" mysql PROCESSION_TEST_MYSQL "mysql://root@127.0.0.1:$mysql_port" \
            mariadb-server "a MySQL or MariaDB server"
        provide "$1" postgres PROCESSION_TEST_POSTGRES "postgres://postgres@127.0.0.1:$postgres_port" \
            postgresql "a PostgreSQL server"
    )
    trap - EXIT
    printf '%s\n' "$lines"
    if [ -n "$real" ]; then printf '%s\n' "$real"; fi
}

# watch_server NAME DATA PID_FILE LOG
watch_server() {
    local name=$1 data=$2 pid_file=$3 log=$4 pid command=()
    pid=$(head -1 "$pid_file" 2>/dev/null) || return 0
    # Its command line, as long as it is one of ours: the number may be another program's by now.
    if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$data"; then
        tr '\0' '\n' <"/proc/$pid/cmdline" >"$data/$name.command"
        return 0
    fi
    if [ ! -s "$data/$name.command" ] || [ ! -d "$data/$name" ]; then return 0; fi
    printf '%s: %s (process %s) is gone; the end of its log:\n' "$(date '+%F %T')" "$name" "$pid"
    tail -60 "$log" 2>/dev/null || true
    mapfile -t command <"$data/$name.command"
    case $name in
        mysql)
            setsid "${command[@]}" </dev/null >>"$log" 2>&1 &
            printf '%s\n' "$!" >"$pid_file"
            ;;
        postgres)
            as_user "$(unprivileged_user postgres)" "${command[@]}" </dev/null >>"$log" 2>&1 &
            ;;
    esac
    sleep 3 # until it has written its process number anew
}

watch() {
    local data
    while sleep 1; do
        if [ ! -f "$1/data" ]; then continue; fi
        data=$(cat "$1/data")
        watch_server mysql "$data" "$data/mysql.pid" "$data/mysql.log"
        watch_server postgres "$data" "$data/postgres/data/postmaster.pid" "$data/postgres/log"
    done
}

stop() {
    local data
    if [ -f "$1/data" ]; then
        data=$(cat "$1/data")
        stop_mysql "$data"
        stop_postgres "$data"
        # A server that was interrupted while it made its data folder may still write for a moment.
        for _ in 1 2 3 4 5; do
            if rm -rf "${data:?}" 2>/dev/null; then break; fi
            sleep 1
        done
        rm -f "$1/data"
        say "private servers stopped and removed"
    fi
    # Only what `start` made, because the folder came from a command line.
    rm -f "$1/mysql.url" "$1/postgres.url"
    rmdir "$1" 2>/dev/null || true
}

state=${2:-$repo/.test-servers}
case ${1:-} in
    start) start "$state" ;;
    stop) stop "$state" ;;
    watch) watch "$state" ;;
    *)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
esac
