#!/usr/bin/env bash
# What changed between two results of the dispatch benchmark, cell by cell.
#
#   scripts/bench-compare.sh OLD NEW    files that were written with: make bench BENCH=batches ARGS='--out FILE'
#
# Ends with 2 when one of them cannot be read.
set -euo pipefail
from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -ne 2 ]; then
    printf 'bench-compare: give two files of results: OLD NEW\n' >&2
    exit 2
fi
# By its own exit code, which cargo would replace by its own; nothing is measured, so no optimisation.
program=$(cargo build --quiet --bench batches --message-format json |
    sed -n 's/.*"name":"batches".*"executable":"\([^"]*\)".*/\1/p')
absolute() { case $1 in /*) printf '%s' "$1" ;; *) printf '%s/%s' "$from" "$1" ;; esac; }
exec "$program" --compare "$(absolute "$1")" "$(absolute "$2")"
