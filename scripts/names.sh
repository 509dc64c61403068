#!/usr/bin/env bash
# How the names of the code read, counted over src and crates without tests. It measures and refuses nothing; `make check`
# prints it. What the figures are held against: docs/style.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t files < <(find src crates -name '*.rs' -not -name 'tests.rs' -not -name '*_tests.rs' -not -path '*/target/*' | sort)

# Without comments, and without the module of tests at the end of a file. Signatures that go over lines are joined.
code() {
    awk 'FNR == 1 { skip = 0 } /^#\[cfg\(test\)\]/ { skip = 1 } !skip { sub(/^[ \t]*\/\/.*/, ""); print }' "${files[@]}"
}

percent() { awk -v part="$1" -v all="$2" 'BEGIN { printf "%.1f %%", all ? 100 * part / all : 0 }'; }

types=$(code | grep -oE '^(pub(\([a-z: ]+\))? )?(struct|enum|trait|type) [A-Z][A-Za-z0-9]*' | awk '{ print $NF }' | sort | uniq -c)
all_types=$(awk '{ n += $1 } END { print n }' <<<"$types")
different_types=$(wc -l <<<"$types")

functions=$(code | grep -oE '\bfn [a-z_][a-z0-9_]*' | awk '{ print $2 }')
all_functions=$(wc -l <<<"$functions")
short_functions=$(awk 'length($0) <= 4' <<<"$functions" | wc -l)
median=$(awk '{ print length($0) }' <<<"$functions" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')

# `&(dyn Fn(…) + Sync)` has brackets and is no tuple.
tuples=$(code | tr '\n' ' ' | grep -oE '\bfn [a-z_][a-z0-9_]*(<[^(]*>)?\([^{;]*' |
    grep -cP '[(,] *(mut )?(\([^()]*\)|[a-z_][a-z0-9_]*): &?\((?!dyn )' || true)

names=$(printf '%s\n' "${files[@]}" | sed 's|.*/||; s|\.rs$||')
all_files=${#files[@]}
ing_files=$(grep -cE 'ing$' <<<"$names" || true)
# `layer name`, where a layer is a top-level module. Folders give the context of a name across layers (`definition/job.rs`
# and `view/job.rs`), but within one layer a name that two files have is ambiguous.
layer_names=$(printf '%s\n' "${files[@]}" | grep -vE '/tests/|/(mod|lib|main)\.rs$' |
    sed -E 's#^(crates/core/src|src)/([^/]+)(/.*/|/)?([^/]*)\.rs$#\1/\2 \4#')
repeated_names=$(sort <<<"$layer_names" | uniq -d)
repeated_files=$(grep -c . <<<"$repeated_names" || true)

printf '%-52s %10s   %s\n' \
    'different names among all types' "$(percent "$different_types" "$all_types")" 'wanted: 95 % or more' \
    'functions with a name of four letters or fewer' "$(percent "$short_functions" "$all_functions")" 'wanted: 15 % or less' \
    'function name, median letters' "$median" 'models: 9 to 13' \
    'functions with an anonymous tuple as a parameter' "$tuples" 'wanted: 10 or fewer' \
    'file names that end in -ing' "$(percent "$ing_files" "$all_files")" 'wanted: 2 % or less' \
    'file names that two files of one layer have' "$repeated_files" 'wanted: none'
if [ "${1:-}" = --list ]; then
    printf '\ntype names with several definitions:\n'
    awk '$1 > 1' <<<"$types" | sort -rn | head -40
    printf '\nshort names of functions:\n'
    awk 'length($0) <= 4' <<<"$functions" | sort | uniq -c | sort -rn | head -40
    printf '\nfile names that two files of one layer have:\n%s\n' "$repeated_names"
fi
