#!/usr/bin/env bash
# Provides the schedulers whose jobs tests import (tests/it/import_database): the PostgreSQL extensions pg_cron and pgAgent
# of the installed version of PostgreSQL. The tests start a server of their own that loads them; no service is started.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/server-functions.sh
. "$repo/scripts/server-functions.sh"

postgres_installed || die "PostgreSQL is missing; scripts/test-servers.sh installs it"
postgres=$(program postgres || program pg_ctl)
postgres=$(readlink -f "$postgres")
share=$("$(dirname "$postgres")/pg_config" --sharedir 2>/dev/null || true)
if [ -z "$share" ]; then
    # pg_config is in a package of its own; Debian's folders are known.
    share=$(dirname "$(dirname "$postgres")")
    share=/usr/share/postgresql/${share##*/}
fi
if [ -f "$share/extension/pg_cron.control" ] && [ -f "$share/extension/pgagent.control" ]; then
    exit 0
fi
version=$("$postgres" --version | grep -oE '[0-9]+' | head -1)
if ! am_root || ! command -v apt-get >/dev/null; then
    die "pg_cron or pgAgent is missing; install postgresql-$version-cron and pgagent"
fi
say "installing postgresql-$version-cron and pgagent with apt-get"
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
{
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "postgresql-$version-cron" pgagent
} >&2
