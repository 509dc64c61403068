#!/usr/bin/env bash
# Holds the API against its own description, on a server with a database of its own, on this machine alone:
# the example of each operation (tests/api/examples.py), two clients that generators make of the description
# (tests/api/client.ts, client.py), and requests that Schemathesis makes up: right ones, wrong ones, odd ones.
#   scripts/test-api.sh                     # what `make test` does: bounded, the same requests each time
#   UPDATE_EXAMPLES=1 scripts/test-api.sh   # records the examples anew into src/api/examples.json
#   EXAMPLES=200 SEED=7 scripts/test-api.sh # longer, others
#   ONLY='^/api/v1/batches' scripts/test-api.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'test-api: %s\n' "$*" >&2; }
wanted=(schemathesis==4.32.5 openapi-python-client==0.29.1)
place=target/test-api-venv
mark=$place/.installed
examples=${EXAMPLES:-15}
seed=${SEED:-4711}

python=$(command -v python3 || true)
if [ -z "$python" ] || ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        say "Python with venv is missing; installing python3 and python3-venv with apt-get"
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
            --no-install-recommends python3 python3-venv; } >&2
        python=$(command -v python3)
    else
        say "Python with venv is missing; install python3 and python3-venv"
        exit 1
    fi
fi
python=$("$python" -c 'import sys; print(sys.executable)')
state="${wanted[*]} for $python"
if [ "$(cat "$mark" 2>/dev/null || true)" != "$state" ]; then
    say "installing ${wanted[*]} into $place"
    rm -rf "$place"
    mkdir -p "$place"
    "$python" -m venv "$place/venv" >&2
    "$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "${wanted[@]}" >&2
    printf '%s\n' "$state" >"$mark"
fi

# As `cargo test` builds it, so that nothing is compiled twice for other features of the same crates.
cargo test --quiet --no-run --test it
program=$PWD/${CARGO_TARGET_DIR:-target}/debug/procession
here=$PWD
work=$(mktemp -d /tmp/procession-test-api.XXXXXX)
server=
stop() {
    if [ -n "$server" ]; then
        kill -9 "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

code=0
# Recorded on a server of its own, which holds what the examples show.
"$here/$place/venv/bin/python" tests/api/examples.py "$program" ${UPDATE_EXAMPLES:+--update} || code=1

# Something of everything, so that there is something to find.
for name in $(compgen -e PROCESSION_ || true); do unset "$name"; done
export PROCESSION_DB=sqlite:$work/p.db PROCESSION_LANG=en
cd "$work"
"$here/tests/api/seed.sh" "$program"
token=$("$program" user token admin --name schemathesis --days 1 \
    $(printf -- "--permission %s " view run force edit script admin))
# Starts a server on the seeded database; `address` says where it is.
start_server() {
    "$program" serve --http 127.0.0.1:0 >"$work/out" 2>"$work/err" &
    server=$!
    address=
    for _ in $(seq 200); do
        address=$(sed -n 's#.*\(http://[0-9.:]*\)/.*#\1#p' "$work/err" | head -n 1)
        [ -n "$address" ] && return
        kill -0 "$server" 2>/dev/null || { cat "$work/err" >&2; exit 1; }
        sleep 0.05
    done
    say "the server does not say where it is"
    cat "$work/err" >&2
    exit 1
}

# Clients that generators make of the description.
generate_clients() {
    mkdir -p "$work/ts" "$work/py"
    "$python" - "$address/api/v1/openapi.json" >"$work/openapi.json" <<'PY'
import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
PY
    [ -s "$work/openapi.json" ] || return 1
    cp "$here/tests/api/client.ts" "$work/ts/"
    ln -s "$here/tests/node/node_modules" "$work/ts/node_modules"
    # `set -e` does not hold in a function whose failure is looked at.
    (
        cd "$work/ts" && printf '{"type": "module"}\n' >package.json &&
            node_modules/.bin/openapi-typescript ../openapi.json --default-non-nullable false -o schema.d.ts >/dev/null &&
            node_modules/.bin/tsc --strict --target es2022 --module nodenext --skipLibCheck false \
                --types node --outDir . client.ts &&
            node client.js "$address" "$token"
    ) || return 1
    "$here/$place/venv/bin/openapi-python-client" generate --path "$work/openapi.json" --output-path "$work/py/made" \
        --meta none --overwrite >"$work/py/out" 2>&1 || { cat "$work/py/out" >&2; return 1; }
    # It reads no YAML; everything else that it would leave out is a fault of the description.
    if [ "$(grep -c 'Cannot parse' "$work/py/out")" != "$(grep -c 'Unsupported content_type application/yaml' "$work/py/out")" ]; then
        say "openapi-python-client leaves something out:"
        cat "$work/py/out" >&2
        return 1
    fi
    mv "$work/py/made" "$work/py/procession_client"
    PYTHONPATH=$work/py "$here/$place/venv/bin/python" "$here/tests/api/client.py" "$address" "$token"
}
"$here/scripts/test-node.sh"
start_server
generate_clients || { say "a generated client does not work"; code=1; }
kill "$server"
wait "$server" || true

only=()
[ -n "${ONLY:-}" ] && only=(--include-path-regex "$ONLY")
# Definitions that are made up must not become scripts that run.
printf '[script]\ninterpreters = {}\n' >procession.toml
start_server
say "$address, $examples examples per route, seed $seed"
ask() {
    "$here/$place/venv/bin/schemathesis" run "$address/api/v1/openapi.json" \
        --header "Authorization: Bearer $token" \
        --checks all --exclude-checks positive_data_acceptance \
        --phases examples,coverage,fuzzing \
        --max-examples "$examples" --seed "$seed" --workers 1 --generation-database none \
        --continue-on-failure --request-timeout 20 --no-color --warnings off \
        --exclude-path /api/v1/events "${only[@]}" "$@" || code=$?
}
# A schema says less than the rules (what a code may look like, whose page a cursor is of), so requests that fit
# it may be refused (positive_data_acceptance). `events` never ends. What may end the token that asks, or its
# owner, comes last, when it is needed no more.
lethal=(revokeOwnToken revokeToken deleteUser updateUser resetPassword endUserSessions)
ask "${lethal[@]/#/--exclude-operation-id=}" "$@"
# Without its token every answer is a refusal, and nothing was tested.
if ! "$here/$place/venv/bin/python" - "$address/api/v1/session" "$token" <<'PY'; then
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + sys.argv[2]})
urllib.request.urlopen(request, timeout=20)
PY
    say "the token does not work any more: some request ended it"
    code=1
fi
[ -n "${ONLY:-}" ] || ask "${lethal[@]/#/--include-operation-id=}" "$@"
if grep -q panicked "$work/err"; then
    say "the server panicked:"
    grep -A 5 panicked "$work/err" >&2
    code=1
fi
kill -0 "$server" 2>/dev/null || { say "the server has gone:"; tail -n 20 "$work/err" >&2; code=1; }
exit "$code"
