#!/usr/bin/env bash
# Fills an empty database with something of everything: seed.sh PROGRAM (PROCESSION_DB says where).
set -euo pipefail
program=$1
quiet() { "$@" >/dev/null 2>&1 || { code=$?; [ "${may_fail:-}" = "$code" ] || { echo "seed: $* ended with $code" >&2; "$@" >&2 || true; exit "$code"; }; }; }

cat >seed.yaml <<'YAML'
groups:
  month_end: { name: Month-end close, type: monthly, owner: gl, due: "20:00", time_zone: Asia/Shanghai }
  daily: { name: 日终, type: daily }
owners: { gl: { name: GL team, email: [gl@bank.example] } }
defaults: { group: month_end, type: SCRIPT, interpreter: sh, timeout_sec: 30, idempotent: true }
jobs:
  LOAD: { name: Load rates, tags: [fx], script: 'echo "::output rows=120"' }
  POST: { name: Post journals, depends_on: [LOAD], script: 'echo posting; exit 3' }
  REPORT: { depends_on: [POST], script: 'echo reported' }
  EOD: { group: daily, name: 日终汇总, script: 'echo 完成' }
schedules:
  nightly: { group: daily, cron: '0 2 * * *', batch_no: day(0), time_zone: Asia/Shanghai }
YAML
quiet "$program" apply seed.yaml
may_fail=1 quiet "$program" run --group month_end --batch-no 202406
may_fail=1 quiet "$program" run --group month_end --batch-no 202407
quiet "$program" run --group daily --batch-no 20240731
quiet "$program" batch open --group daily --batch-no 20240801
quiet "$program" job hold 20240801 EOD --reason "waits for the data"
PROCESSION_USER_PASSWORD=quiet-harbour-lantern-42 quiet "$program" user add admin --role admin --right force --right script
PROCESSION_USER_PASSWORD=quiet-harbour-lantern-43 quiet "$program" user add reader --role viewer --group daily
