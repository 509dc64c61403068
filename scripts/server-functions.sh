# Functions for scripts that start database servers for tests; sourced, not run.
#
# The script that sources this sets wait_seconds, the time for which a server of ours may take to answer.

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
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

# Asks the server itself with the mysql client; 2 where none is installed.
mysql_ask() { # mysql_ask URL SQL
    local client options=()
    split_url "$1" 3306
    client=$(program mariadb mysql) || return 2
    # Newer MariaDB clients would refuse the self-made certificate of a server.
    if "$client" --version | grep -qi mariadb; then options=(--skip-ssl-verify-server-cert); fi
    MYSQL_PWD=$url_password "$client" --no-defaults --protocol=tcp --connect-timeout=5 \
        ${options[@]+"${options[@]}"} -h "$url_host" -P "$url_port" -u "${url_user:-root}" \
        --skip-column-names -e "$2" 2>/dev/null
}

# A question to the server itself where a client is installed, else whether the port is open.
mysql_answers() {
    local code=0
    mysql_ask "$1" 'SELECT 1' >/dev/null || code=$?
    if [ "$code" -eq 2 ]; then
        port_answers "$url_host" "$url_port"
        return
    fi
    return "$code"
}

# What the server calls itself, such as 9.7.4-2 or 11.8.9-MariaDB-4; nothing where it cannot be asked.
mysql_version() { mysql_ask "$1" 'SELECT VERSION()' || true; }

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
    local folder=$1/mysql log=$1/mysql.log server user
    server=$(program mariadbd mysqld)
    user=$(id -un)
    if am_root; then user=$(unprivileged_user mysql); fi
    own_folder "$folder" "$user"
    own_folder "$folder/tmp" "$user"
    local -x TMPDIR=$folder/tmp
    if "$server" --version | grep -qi mariadb; then
        "$(program mariadb-install-db mysql_install_db)" --no-defaults --user="$user" \
            --datadir="$folder/data" --auth-root-authentication-method=normal --skip-test-db \
            >"$log" 2>&1 || { tail -20 "$log" >&2; die "mariadb-install-db failed"; }
    else
        as_user "$user" "$server" --no-defaults --initialize-insecure --datadir="$folder/data" \
            >"$log" 2>&1 || { tail -20 "$log" >&2; die "mysqld --initialize-insecure failed"; }
    fi
    launch_mysql "$1/mysql.pid" "$log" "$folder" \
        "$server" --no-defaults --user="$user" --datadir="$folder/data" \
        || die "a private MySQL/MariaDB server did not start; its log is above"
}

# launch_mysql PID_FILE LOG FOLDER COMMAND…: starts a server, whose data are made, on a free port; prints its URL.
# FOLDER has a folder `tmp` for its temporary tables: a server that starts removes all of them from its folder, in /tmp
# those of the other servers too ("Error on delete of '/tmp/#sql-temptable-….MAI'", now and then, November 2026).
launch_mysql() {
    local pid_file=$1 log=$2 folder=$3 port session=()
    shift 3
    printf '%s\n' "CREATE USER IF NOT EXISTS 'root'@'127.0.0.1';" \
        "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;" >"$folder/init.sql"
    chmod 644 "$folder/init.sql"
    # In a session of its own: Ctrl-C is for the caller, whose trap then stops the server in order.
    if command -v setsid >/dev/null; then session=(setsid); fi
    for _ in 1 2 3; do
        port=$(free_port)
        ${session[@]+"${session[@]}"} "$@" --init-file="$folder/init.sql" --socket="$folder/socket" --tmpdir="$folder/tmp" \
            --pid-file="$folder/pid" --bind-address=127.0.0.1 --port="$port" --skip-name-resolve --skip-log-bin \
            --innodb-flush-log-at-trx-commit=2 --max-connections=500 </dev/null >>"$log" 2>&1 &
        printf '%s\n' "$!" >"$pid_file"
        if wait_until "$!" mysql_answers "mysql://root@127.0.0.1:$port"; then
            printf 'mysql://root@127.0.0.1:%s\n' "$port"
            return 0
        fi
        stop_pid "$!"
    done
    tail -30 "$log" >&2
    return 1
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
