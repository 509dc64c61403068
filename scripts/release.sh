#!/usr/bin/env bash
# What a release consists of, in target/packages: packages of the program, bill of materials, chart, digests.
# From a commit, so that it can be made again; the workflow `release` does the same for static programs on two processors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'release: %s\n' "$*" >&2; }

if [ -n "$(git status --porcelain)" ]; then
    say "the tree has changes that are not committed; commit them, so that the release can be made again"
    exit 1
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
scripts/package.sh "$@"
out=target/packages
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
scripts/test-kubernetes.sh "$out/procession-chart-$version.tgz" >&2
cp SECURITY.md docs/third-party.json "$out/"
scripts/release-notes.sh "$version" >"$out/release-notes.md"
(cd "$out" && sha256sum -- $(ls | grep -v SHA256SUMS) >SHA256SUMS)
say "$out: procession $version, commit $(git rev-parse --short HEAD)"
