#!/usr/bin/env bash
# What a release consists of, in target/dist: the program, its bill of materials, and the digests of both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'release: %s\n' "$*" >&2; }

if [ -n "$(git status --porcelain)" ]; then
    say "the tree has changes that are not committed; commit them, so that the release can be made again"
    exit 1
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
dist=target/dist
rm -rf "$dist"
mkdir -p "$dist"
cargo build --release --locked --bin procession
install -m 0755 target/release/procession "$dist/procession"
scripts/sbom.sh "$dist/procession.cdx.json"
cp LICENSE SECURITY.md docs/third-party.json "$dist/"
(cd "$dist" && sha256sum procession procession.cdx.json LICENSE SECURITY.md third-party.json >SHA256SUMS)
say "$dist: $("$dist/procession" --version), commit $(git rev-parse --short HEAD)"
