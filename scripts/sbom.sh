#!/usr/bin/env bash
# The software bill of materials of a release, CycloneDX 1.5 as JSON: crates, Rust, SQLite, time zones, files of others.
#
#   scripts/sbom.sh [FILE]      target/sbom/procession.cdx.json unless a file is named
#
# With SOURCE_DATE_EPOCH set, two runs give the same bytes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'sbom: %s\n' "$*" >&2; }

# Another version is used when it is installed.
cyclonedx_version=0.5.9
file=${1:-target/sbom/procession.cdx.json}

for tool in jq rustc cargo; do
    command -v "$tool" >/dev/null || { say "$tool is missing; install it"; exit 1; }
done
export PATH=$PWD/target/test-tools/bin:$PATH
if ! command -v cargo-cyclonedx >/dev/null; then
    say "cargo-cyclonedx is missing; building it into target/test-tools, which takes some minutes, once"
    cargo install --quiet --locked --debug --root target/test-tools cargo-cyclonedx --version "$cyclonedx_version" >&2 || {
        say "cargo-cyclonedx cannot be built; with a registry at hand: cargo install cargo-cyclonedx"
        exit 1
    }
fi

work=$(mktemp -d /tmp/procession-sbom.XXXXXX)
# It writes beside the Cargo.toml of each crate of the workspace, under this name; that of the program lists all.
made=procession-sbom-$$
trap 'rm -rf "$work" "$made.json" "crates/core/$made.json"' EXIT
cargo cyclonedx --quiet --format json --spec-version 1.5 --override-filename "$made"
mv "$made.json" "$work/crates.json"

# The folder of the sources of a crate, as Cargo has it.
cargo metadata --format-version 1 --locked >"$work/metadata.json"
folder_of() {
    dirname "$(jq -r --arg name "$1" '.packages[] | select(.name == $name) | .manifest_path' "$work/metadata.json")"
}
sqlite=$(sed -n 's/^#define SQLITE_VERSION *"\([0-9.]*\)".*/\1/p' "$(folder_of libsqlite3-sys)/sqlite3/sqlite3.h")
zones=$(sed -n 's/^Release \(20[0-9][0-9][a-z]*\) .*/\1/p' "$(folder_of chrono-tz)/tz/NEWS" | head -1)
rust=$(rustc --version | cut -d ' ' -f 2)
for found in "SQLite:$sqlite" "time zones:$zones" "Rust:$rust"; do
    [ -n "${found#*:}" ] || { say "the version of ${found%%:*} cannot be found in its sources"; exit 1; }
done

mkdir -p "$(dirname "$file")"
jq --arg sqlite "$sqlite" --arg zones "$zones" --arg rust "$rust" --arg root "path+file://$PWD" \
    --slurpfile others docs/third-party.json '
    def plain($type; $name; $version; $licence; $url): {
        type: $type, "bom-ref": "\($name)@\($version)", name: $name, version: $version, scope: "required",
        licenses: [$licence], externalReferences: [{type: "website", url: $url}]
    };
    # The folder of the build says nothing about the program.
    (.. | strings) |= (if startswith($root) then "pkg:cargo/" + (split("#") | last) else . end)
    | (if env.SOURCE_DATE_EPOCH then
          .metadata.timestamp = (env.SOURCE_DATE_EPOCH | tonumber | todate) | del(.serialNumber)
      else . end)
    | .components += [
        plain("library"; "sqlite"; $sqlite; {license: {name: "public domain"}}; "https://sqlite.org/"),
        plain("data"; "tzdata"; $zones; {license: {name: "public domain"}}; "https://www.iana.org/time-zones"),
        plain("framework"; "rust-std"; $rust; {expression: "MIT OR Apache-2.0"}; "https://www.rust-lang.org/")
      ]
    | .components += [$others[0].components[] | {
        type: (if .scope == "binary" then "library" else "data" end),
        "bom-ref": "\(.name)@\(.version)", name, version, description: .what,
        scope: (if .scope == "binary" then "required" else "excluded" end),
        licenses: [{license: {id: .licence}}],
        externalReferences: [{type: "vcs", url: .source}],
        components: [.files | to_entries[] | {
            type: "file", name: .key, hashes: [{alg: "SHA-256", content: .value}]
        }]
      }]
    ' "$work/crates.json" >"$file"
say "$file: $(jq '.components | length' "$file") components"
