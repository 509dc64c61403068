#!/usr/bin/env bash
# Provides what the tests in a browser need (tests/browser): Chromium with its chromedriver, a font with
# Chinese in it, and axe-core at the version of its lock file. Installs only what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'test-browser: %s\n' "$*" >&2; }
place=target/test-axe

missing=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
command -v chromedriver >/dev/null || missing+=(chromium-driver)
# Without one the pages in Chinese are boxes; axe does not mind, people who look at pictures do.
if command -v fc-list >/dev/null && [ -z "$(fc-list :lang=zh)" ]; then
    missing+=(fonts-noto-cjk)
fi
if [ "${#missing[@]}" -gt 0 ]; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "installing ${missing[*]} with apt-get"
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
            --no-install-recommends "${missing[@]}"; } >&2
    elif [ "${missing[*]}" != fonts-noto-cjk ]; then
        say "${missing[*]} is missing; install it (Debian's names), or Chrome and a chromedriver of its version"
        exit 1
    fi
fi

# npm is there: scripts/test-node.sh has seen to it. `npm ci` empties node_modules first, so the mark is
# there only after a full install.
lock=$(node -p 'require("crypto").createHash("sha256").update(require("fs").readFileSync("tests/browser/axe/package-lock.json")).digest("hex")')
mark=$place/node_modules/.installed-from
if [ "$(cat "$mark" 2>/dev/null || true)" != "$lock" ]; then
    say "installing axe-core (npm ci)"
    mkdir -p "$place"
    cp tests/browser/axe/package.json tests/browser/axe/package-lock.json "$place/"
    (cd "$place" && npm ci --ignore-scripts --no-audit --no-fund >&2)
    printf '%s\n' "$lock" >"$mark"
fi
