#!/usr/bin/env bash
# The documentation as a site with search, in English and Chinese: target/docs-site/html/index.html.
#
# mdBook is taken from the PATH or built into target/test-tools, once. The pages are copied with the folders
# that they have in the repository, so that every link between them works on the site as well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'docs-site: %s\n' "$*" >&2; }

mdbook_version=0.5.4
export PATH=$PWD/target/test-tools/bin:$PATH
if ! command -v mdbook >/dev/null; then
    say "mdbook is missing; building it into target/test-tools, which takes some minutes, once"
    cargo install --quiet --locked --debug --no-default-features --features search \
        --root target/test-tools mdbook --version "$mdbook_version" >&2 || {
        say "mdbook cannot be built; with a registry at hand: cargo install --locked mdbook"
        exit 1
    }
fi

site=target/docs-site
rm -rf "$site"
mkdir -p "$site/src"
cp docs/book.toml scripts/docs-site/* "$site/"
# What pages link to, and no more; SUMMARY.md moves up, where mdBook wants it.
git ls-files --cached --others --exclude-standard -- '*.md' docs dag-examples deploy LICENSE src/config.default.toml \
    Makefile scripts migrations/columns.txt |
    grep -vE '^(tests|\.github)/|^docs/(SUMMARY\.md|book\.toml)$' |
    while IFS= read -r file; do
        mkdir -p "$site/src/$(dirname "$file")"
        cp "$file" "$site/src/$file"
    done
sed -e 's#](\([^./)]\)#](docs/\1#' -e 's#](\.\./#](#' docs/SUMMARY.md >"$site/src/SUMMARY.md"

mdbook build "$site" >&2
# mdBook knows one language for all pages.
for page in "$site"/html/docs/zh/*.html "$site/html/README.zh.html"; do
    sed -i 's/<html lang="en"/<html lang="zh-CN"/' "$page"
done
say "$site/html/index.html; look at it with: python3 -m http.server --directory $site/html"
