#!/usr/bin/env bash
# Builds the libraries of the console's editor (src/console/vendor/editor) from the packages of
# scripts/editor-bundle/package-lock.json: one minified module and the licences of all that is in it.
# The digests belong in docs/third-party.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

place=target/editor-bundle
out=$PWD/src/console/vendor/editor
mkdir -p "$place" "$out"
cp scripts/editor-bundle/{package.json,package-lock.json,entry.mjs,licences.mjs,.npmrc} "$place/"
cd "$place"
npm ci --ignore-scripts --no-audit --no-fund >&2
node node_modules/esbuild/install.js
node_modules/.bin/esbuild entry.mjs --bundle --format=esm --minify --charset=utf8 --legal-comments=none \
    --metafile=meta.json --outfile="$out/editor.js" >&2
node licences.mjs meta.json >"$out/LICENSES.txt"
sha256sum "$out/editor.js" "$out/LICENSES.txt"
