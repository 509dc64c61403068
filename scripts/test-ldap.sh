#!/usr/bin/env bash
# Provides what the tests of the directory need (tests/api/ldap): slapd and ldapmodify. The tests start slapd
# themselves, on ports and in folders of their own; the service that the package would start is kept from starting.
set -euo pipefail

say() { printf 'test-ldap: %s\n' "$*" >&2; }

if [ -x /usr/sbin/slapd ] && command -v ldapmodify >/dev/null; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    say "slapd or ldapmodify is missing; install slapd and ldap-utils"
    exit 1
fi
say "installing slapd and ldap-utils with apt-get"
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends slapd ldap-utils; } >&2
