#!/usr/bin/env bash
# Lints and renders the Helm chart with Helm's own code, and holds what comes out, and the manifests of deploy/kubernetes,
# against the schemas of Kubernetes. Needs no cluster and no helm; Python 3 and PyPI, once.
#   scripts/test-kubernetes.sh [CHART.tgz]      with a name, the chart is packed into that file as well
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wanted='helm-python-sdk==0.2.2 kubernetes-validate==1.37.0 PyYAML==6.0.3'
place=target/test-kubernetes-venv
mark=$place/.installed
python=$(command -v python3)
state="$wanted for $("$python" -c 'import sys; print(sys.executable)')"
if [ "$(cat "$mark" 2>/dev/null || true)" != "$state" ]; then
    printf 'test-kubernetes: installing %s into %s\n' "$wanted" "$place" >&2
    rm -rf "$place"
    mkdir -p "$place"
    "$python" -m venv "$place/venv" >&2
    # shellcheck disable=SC2086 # three words
    "$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input $wanted >&2
    printf '%s\n' "$state" >"$mark"
fi
exec "$place/venv/bin/python" scripts/check_kubernetes.py "$@"
