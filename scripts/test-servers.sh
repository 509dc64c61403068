#!/usr/bin/env bash
# Finds or starts the MySQL/MariaDB and PostgreSQL servers that the tests run against.
#
#   scripts/test-servers.sh start [FOLDER]   prints `export PROCESSION_TEST_…=URL`, one per server
#   scripts/test-servers.sh stop  [FOLDER]   stops and removes what `start` with this FOLDER started
#
# FOLDER remembers what was started; `.test-servers` in the checkout unless given.
#
# For each server the first of these that works is used:
#   1. PROCESSION_TEST_MYSQL / PROCESSION_TEST_POSTGRES, when set. A server that is named there and
#      does not answer is an error: falling back would test something nobody asked for.
#   2. A server on the usual port of 127.0.0.1 that lets root (postgres) in without a password.
#   3. A private server, from installed binaries, on a free port of 127.0.0.1, data under /tmp.
#   4. As root on a machine with apt-get: the packages are installed, then as 3.
# Otherwise it says what to install and fails. A missing server is a failure, never a skip.
#
# Settings: PROCESSION_TEST_DEFAULT_MYSQL_PORT (3306), PROCESSION_TEST_DEFAULT_POSTGRES_PORT (5432),
#           PROCESSION_TEST_SERVER_WAIT (seconds to wait for a server of ours; 60).
set -euo pipefail
shopt -s inherit_errexit # bash 4.4; without it a failure inside $(…) would be lost

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mysql_port=${PROCESSION_TEST_DEFAULT_MYSQL_PORT:-3306}
postgres_port=${PROCESSION_TEST_DEFAULT_POSTGRES_PORT:-5432}
wait_seconds=${PROCESSION_TEST_SERVER_WAIT:-60}

say() { printf 'test-servers: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
am_root() { [ "$(id -u)" -eq 0 ]; }

# --- finding binaries ------------------------------------------------------------------------------

# Prints the path of the first of the named programs, in PATH or where packages hide servers.
program() {
    local name folder
    for name in "$@"; do
        if command -v "$name" 2>/dev/null; then return 0; fi
        for folder in /usr/sbin /usr/local/sbin /usr/libexec /usr/local/mysql/bin \
            $(printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin | sort -rV); do
            if [ -x "$folder/$name" ]; then
                printf '%s\n' "$folder/$name"
                return 0
            fi
        done
    done
    return 1
}

mysql_installed() { program mariadbd mysqld >/dev/null; }
postgres_installed() { program initdb >/dev/null && program pg_ctl >/dev/null; }

# --- does a server answer? -------------------------------------------------------------------------

port_answers() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }

# Splits scheme://user:password@host:port/… into url_user, url_password, url_host, url_port.
split_url() { # split_url URL DEFAULT_PORT
    local authority credentials='' rest=${1#*://}
    authority=${rest%%[/?]*}
    if [[ $authority == *@* ]]; then
        credentials=${authority%@*}
        authority=${authority##*@}
    fi
    url_user=${credentials%%:*}
    url_password=''
    if [[ $credentials == *:* ]]; then
        url_password=${credentials#*:}
        url_password=$(printf '%b' "${url_password//%/\\x}")
    fi
    url_host=${authority%:*}
    url_port=$2
    if [[ $authority == *:* ]]; then url_port=${authority##*:}; fi
}

# A question to the server itself where a client is installed, else whether the port is open.
mysql_answers() {
    local client options=()
    split_url "$1" 3306
    if ! client=$(program mariadb mysql); then
        port_answers "$url_host" "$url_port"
        return
    fi
    # Newer MariaDB clients would refuse the self-made certificate of a server.
    if "$client" --version | grep -qi mariadb; then options=(--skip-ssl-verify-server-cert); fi
    MYSQL_PWD=$url_password "$client" --no-defaults --protocol=tcp --connect-timeout=5 \
        ${options[@]+"${options[@]}"} -h "$url_host" -P "$url_port" -u "${url_user:-root}" \
        -e 'SELECT 1' >/dev/null 2>&1
}

postgres_answers() {
    local client
    if ! client=$(program psql); then
        split_url "$1" 5432
        port_answers "$url_host" "$url_port"
        return
    fi
    PGCONNECT_TIMEOUT=5 "$client" -w -X -q -d "$1" -c 'SELECT 1' >/dev/null 2>&1
}

# --- private servers -------------------------------------------------------------------------------

free_port() {
    local port
    for _ in $(seq 50); do
        port=$((20000 + RANDOM % 12000)) # below the range from which systems give out client ports
        if ! port_answers 127.0.0.1 "$port"; then
            printf '%s\n' "$port"
            return 0
        fi
    done
    die "found no free port between 20000 and 32000"
}

# Both servers refuse, rightly, to run as root; this is whom they run as then.
unprivileged_user() {
    local user
    for user in "$1" nobody; do
        if id "$user" >/dev/null 2>&1; then
            printf '%s\n' "$user"
            return 0
        fi
    done
    die "there is neither a user $1 nor a user nobody to run the server as"
}

as_user() { # as_user USER COMMAND…
    local user=$1
    shift
    # The present folder may be closed to that user; initdb and postgres want to stand somewhere.
    if ! am_root; then
        (cd / && "$@")
    elif command -v runuser >/dev/null; then
        (cd / && runuser -u "$user" -- "$@")
    else
        (cd / && su -s /bin/sh "$user" -c "$(printf '%q ' "$@")")
    fi
}

own_folder() { # own_folder FOLDER USER: makes a folder that only this user may enter
    mkdir -p "$1"
    chmod 700 "$1"
    if am_root; then chown "$2" "$1"; fi
}

start_mysql() { # start_mysql FOLDER: prints the URL
    local folder=$1/mysql log=$1/mysql.log server user port session=()
    server=$(program mariadbd mysqld)
    user=$(id -un)
    if am_root; then user=$(unprivileged_user mysql); fi
    own_folder "$folder" "$user"
    if "$server" --version | grep -qi mariadb; then
        "$(program mariadb-install-db mysql_install_db)" --no-defaults --user="$user" \
            --datadir="$folder/data" --auth-root-authentication-method=normal --skip-test-db \
            >"$log" 2>&1 || { tail -20 "$log" >&2; die "mariadb-install-db failed"; }
    else
        as_user "$user" "$server" --no-defaults --initialize-insecure --datadir="$folder/data" \
            >"$log" 2>&1 || { tail -20 "$log" >&2; die "mysqld --initialize-insecure failed"; }
    fi
    printf '%s\n' "CREATE USER IF NOT EXISTS 'root'@'127.0.0.1';" \
        "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;" >"$folder/init.sql"
    chmod 644 "$folder/init.sql"

    # In a session of its own: Ctrl-C is for the caller, whose trap then stops the server in order.
    if command -v setsid >/dev/null; then session=(setsid); fi
    for _ in 1 2 3; do
        port=$(free_port)
        ${session[@]+"${session[@]}"} "$server" --no-defaults --user="$user" \
            --datadir="$folder/data" --init-file="$folder/init.sql" --socket="$folder/socket" \
            --bind-address=127.0.0.1 --port="$port" --skip-name-resolve --skip-log-bin \
            --innodb-flush-log-at-trx-commit=2 --max-connections=500 \
            </dev/null >>"$log" 2>&1 &
        printf '%s\n' "$!" >"$1/mysql.pid"
        if wait_until "$!" mysql_answers "mysql://root@127.0.0.1:$port"; then
            printf 'mysql://root@127.0.0.1:%s\n' "$port"
            return 0
        fi
        stop_pid "$!"
    done
    tail -30 "$log" >&2
    die "a private MySQL/MariaDB server did not start; its log is above"
}

stop_mysql() {
    local pid
    if [ ! -f "$1/mysql.pid" ]; then return 0; fi
    pid=$(cat "$1/mysql.pid")
    # The number may be another program's by now; ours names its folder on its command line.
    if { tr '\0' ' ' <"/proc/$pid/cmdline" || ps -p "$pid" -o args=; } 2>/dev/null | grep -qF "$1"; then
        stop_pid "$pid"
    fi
}

start_postgres() { # start_postgres FOLDER: prints the URL
    local folder=$1/postgres log=$1/postgres/log user port
    user=$(id -un)
    if am_root; then user=$(unprivileged_user postgres); fi
    own_folder "$folder" "$user"
    as_user "$user" "$(program initdb)" -D "$folder/data" -U postgres --auth=trust \
        --encoding=UTF8 --locale=C --no-sync >"$1/initdb.log" 2>&1 \
        || { tail -20 "$1/initdb.log" >&2; die "initdb failed"; }

    for _ in 1 2 3; do
        port=$(free_port)
        # pg_ctl comes back when the server takes connections. All its descriptors are files: the
        # server inherits them, and a pipe it holds open would keep our reader waiting for ever.
        if as_user "$user" "$(program pg_ctl)" start -w -t "$wait_seconds" -D "$folder/data" \
            -l "$log" -o "-p $port -c listen_addresses=127.0.0.1 -k '$folder' \
                -c fsync=off -c max_connections=300" </dev/null >"$1/pg_ctl.log" 2>&1 \
            && postgres_answers "postgres://postgres@127.0.0.1:$port"; then
            printf 'postgres://postgres@127.0.0.1:%s\n' "$port"
            return 0
        fi
        stop_postgres "$1"
    done
    cat "$1/pg_ctl.log" >&2
    tail -30 "$log" >&2 || true
    die "a private PostgreSQL server did not start; its log is above"
}

stop_postgres() {
    local pid_file=$1/postgres/data/postmaster.pid user
    if [ ! -f "$pid_file" ]; then return 0; fi
    user=$(id -un)
    if am_root; then user=$(unprivileged_user postgres); fi
    as_user "$user" "$(program pg_ctl)" stop -w -m fast -D "$1/postgres/data" >/dev/null 2>&1 \
        || stop_pid "$(head -1 "$pid_file")"
}

# A dead process whose parent does not collect it (PID 1 of many containers) is dead all the same.
alive() {
    kill -0 "$1" 2>/dev/null && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

# wait_until PID QUESTION…: until the question is answered, the process is gone or time is up.
wait_until() {
    local pid=$1 deadline=$((SECONDS + wait_seconds))
    shift
    until "$@"; do
        if ! alive "$pid" || [ "$SECONDS" -ge "$deadline" ]; then return 1; fi
        sleep 0.2
    done
    alive "$pid" # else somebody else's server answered on that port
}

stop_pid() {
    kill "$1" 2>/dev/null || return 0
    for _ in $(seq 150); do
        if ! alive "$1"; then return 0; fi
        sleep 0.2
    done
    say "process $1 did not end within 30 s of TERM; killing it"
    kill -9 "$1" 2>/dev/null || true
}

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

start() {
    local lines
    if [ ! -d "$1" ]; then trap 'stop "$state"' EXIT; fi # all or nothing of what is new stays
    lines=$(
        provide "$1" mysql PROCESSION_TEST_MYSQL "mysql://root@127.0.0.1:$mysql_port" \
            mariadb-server "a MySQL or MariaDB server"
        provide "$1" postgres PROCESSION_TEST_POSTGRES "postgres://postgres@127.0.0.1:$postgres_port" \
            postgresql "a PostgreSQL server"
    )
    trap - EXIT
    printf '%s\n' "$lines"
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
    *)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
esac
