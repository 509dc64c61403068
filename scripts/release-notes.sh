#!/usr/bin/env bash
# The section of a version in CHANGELOG.md, without its heading: scripts/release-notes.sh 0.2.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?which version?}
notes=$(awk -v head="## [$version]" 'index($0, "## [") == 1 { inside = index($0, head) == 1; next } inside' CHANGELOG.md)
[ -n "${notes//[[:space:]]/}" ] || { printf 'release-notes: CHANGELOG.md has no section %s\n' "$version" >&2; exit 1; }
printf '%s\n' "$notes"
