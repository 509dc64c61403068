#!/usr/bin/env bash
# Holds what is written by hand beside the PostgreSQL corpus of lineage (tests/data/lineage/postgres.sql) against
# PostgreSQL's own parser, libpg_query, as pglast has it. Needs no server.
#   scripts/test-lineage.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wanted='pglast==8.8'
place=target/test-lineage-venv
mark=$place/.installed
python=$(command -v python3)
state="$wanted for $("$python" -c 'import sys; print(sys.executable)')"
if [ "$(cat "$mark" 2>/dev/null || true)" != "$state" ]; then
    printf 'test-lineage: installing %s into %s\n' "$wanted" "$place" >&2
    rm -rf "$place"
    mkdir -p "$place"
    "$python" -m venv "$place/venv" >&2
    "$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$wanted" >&2
    printf '%s\n' "$state" >"$mark"
fi
exec "$place/venv/bin/python" scripts/lineage_oracle.py tests/data/lineage/postgres.sql
