"""An example of every operation of the API, recorded from a running server and held against the description.

    examples.py PROGRAM            records anew in memory; answers and the stored examples must fit their schemas
    examples.py PROGRAM --update   also writes src/api/examples.json

Needs Python 3 with jsonschema-rs; scripts/test-api.sh provides both. PROGRAM runs on a SQLite database of its own.
"""

import base64
import getpass
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import re
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import jsonschema_rs

STORED = pathlib.Path(__file__).resolve().parents[2] / "src/api/examples.json"
PASSWORD = "quiet-harbour-lantern-42"

DEFINITION = """
groups:
  month_end: { name: Month-end close, type: monthly, owner: gl, due: "20:00", time_zone: Asia/Shanghai }
  daily: { name: Daily load, type: daily }
  payments: { name: Payments, type: free }
owners: { gl: { name: General ledger team, email: [gl@bank.example] } }
sources: { books: { url: "sqlite:books.db" } }
defaults: { group: month_end, type: SCRIPT, interpreter: sh, timeout_sec: 60 }
jobs:
  LOAD_FX: { name: Load exchange rates, tags: [fx], script: 'echo "rates of ECB"; echo "::output rows=120"' }
  POST_GL: { name: Post journals, depends_on: [LOAD_FX], idempotent: true, script: 'echo "account 4711 is closed" >&2; exit 3' }
  REPORT: { name: Print the report, depends_on: [POST_GL], script: 'echo reported' }
  EOD: { group: daily, name: End of day, script: 'echo done' }
  BIG: { group: daily, name: Long list, script: 'echo "::output list=$(seq -s, 1 20000)"' }
  RELEASE: { group: payments, name: Release payments, type: APPROVAL, approval: { role: operator, question: "Release the payments?" } }
  PAY: { group: payments, name: Send payments, type: NOOP, depends_on: [RELEASE] }
  SLOW: { group: payments, name: Wait for the bank, script: 'sleep 40' }
schedules:
  nightly: { group: daily, cron: '0 2 * * *', batch_no: day(0), time_zone: Asia/Shanghai }
  on_file: { group: daily, event: bank_file, batch_no: day(0), time_zone: Asia/Shanghai }
"""

SETTINGS = """
[four_eyes.month_end]
actions = ['force']
break_glass = true
[retention]
batches_days = 400
[http]
public_url = 'http://127.0.0.1'
[http.oidc]
issuer = '{issuer}'
client_id = 'procession'

"""

# The same names for the same things, whatever machine records.
SHOWN_HOST = "etl-01"
SHOWN_USER = "batch"
SECRET_MEMBERS = {
    "csrf": "example-csrf", "token": "pcs_example", "one_time_password": "example-one-time-password",
    "link": "otpauth://totp/Procession:ann?secret=EXAMPLE", "qr_svg": "<svg>…</svg>",
}
LONGEST_TEXT = 400
LONGEST_LIST = 3


class Server:
    """A served database with users, batches, and something of everything."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("PROCESSION_")}
        key = base64.b64encode(bytes(range(32))).decode()
        self.environment.update(
            PROCESSION_DB=f"sqlite:{folder}/p.db", PROCESSION_LANG="en", PROCESSION_SECRET_KEY=key)
        self.process = None

    def run(self, *words, may_fail=False, **environment):
        done = subprocess.run([self.program, *words], cwd=self.folder, env={**self.environment, **environment},
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0 and not may_fail:
            sys.exit(f"procession {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def serve(self):
        with open(f"{self.folder}/serve.log", "w") as log:
            self.process = subprocess.Popen([self.program, "serve", "--http", "127.0.0.1:0"], cwd=self.folder,
                                            env=self.environment, stdout=log, stderr=log)
        for _ in range(600):
            found = re.search(r"(http://127\.0\.0\.1:\d+)/", pathlib.Path(f"{self.folder}/serve.log").read_text())
            if found:
                self.address = found.group(1)
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit("serve does not start:\n" + pathlib.Path(f"{self.folder}/serve.log").read_text())

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(timeout=60)


class Caller:
    """Somebody who calls, by token or by a session with its cookie."""

    def __init__(self, token=None):
        self.token, self.cookie, self.csrf = token, None, None

    def headers(self):
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if self.cookie:
            return {"Cookie": self.cookie, "X-CSRF-Token": self.csrf or ""}
        return {}


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


class Recorder:
    def __init__(self, server):
        self.server = server
        self.recorded, self.faults = {}, []
        self.description = json.loads(self.send("GET", "/api/v1/openapi.json", Caller())[2])
        self.operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in self.description["paths"].items() for method, operation in methods.items()
        }

    def send(self, method, path, caller, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {**caller.headers(), "Accept": "*/*"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.server.address + path, data, headers, method=method)
        try:
            response = OPENER.open(request, timeout=30)
        except urllib.error.HTTPError as refused:
            response = refused
        if "event-stream" in (response.headers.get("Content-Type") or ""):
            return response.status, response.headers, response.readline() + response.readline()
        return response.status, response.headers, response.read()

    def call(self, operation_id, caller, path=None, query=None, body=None, expect=200, again=0):
        """Calls an operation and records it. `again`: how many seconds an answer of another status is waited for."""
        method, template, operation = self.operations[operation_id]
        filled = template
        for name, value in (path or {}).items():
            filled = filled.replace("{" + name + "}", urllib.parse.quote(str(value), safe=""))
        if query:
            filled += "?" + urllib.parse.urlencode(query)
        if method != "GET" and body is None:
            body = {}
        until = time.monotonic() + again
        while True:
            status, headers, raw = self.send(method, filled, caller, body)
            if status == expect or time.monotonic() > until:
                break
            time.sleep(0.3)
        kind = (headers.get("Content-Type") or "").split(";")[0]
        if status != expect:
            sys.exit(f"{operation_id}: {method} {filled} {json.dumps(body)}: {status}, expected {expect}: {raw[:800]!r}")
        answer = json.loads(raw) if kind == "application/json" else raw.decode("utf-8", "replace")
        set_cookie = headers.get("Set-Cookie")
        if set_cookie:
            caller.cookie = set_cookie.split(";")[0]
        if isinstance(answer, dict) and "csrf" in answer:
            caller.csrf = answer["csrf"]
        if operation_id not in self.recorded:
            if kind == "application/json" and status in (200, 202):
                content = operation["responses"][str(status)]["content"]["application/json"]["schema"]
                self.hold(content, answer, f"{operation_id}: answer")
            one = {}
            if path:
                one["path"] = path
            if query:
                one["query"] = query
            if method != "GET":
                one["body"] = body
            if status == 200:
                one["answer"] = answer
            if operation_id == "getDefinitionSchema":
                # The whole is 55 kB; `procession schema` prints it.
                one["answer"] = {k: answer[k] for k in ("$schema", "title", "type")}
            self.recorded[operation_id] = self.shown(one)
        return answer

    def hold(self, schema, value, what):
        if schema in (True, {}):
            self.faults.append(f"{what}: its schema says nothing; answer with a type")
            return
        whole = {**schema, "components": self.description["components"]}
        try:
            jsonschema_rs.validator_for(whole).validate(value)
        except jsonschema_rs.ValidationError as fault:
            at = "/".join(map(str, fault.instance_path))
            self.faults.append(f"{what}: at {at or 'its top'}: {fault.message[:300]}")

    def shown(self, value, name=""):
        """The value without what is secret, long, or of this machine."""
        if isinstance(value, dict):
            return {k: self.shown(v, k) for k, v in value.items()}
        if isinstance(value, list):
            if name == "recovery_codes":
                return ["example-1", "example-2"]
            return [self.shown(v, name) for v in value[:LONGEST_LIST]]
        if isinstance(value, str):
            if name in SECRET_MEMBERS:
                return SECRET_MEMBERS[name]
            if name in ("secret", "password", "old", "new", "code") and "/" not in value and " " not in value \
                    and not value.isupper():
                return "example"
            if name == "secret":
                return "EXAMPLE"
            value = value.replace(self.server.folder, "/var/lib/procession").replace(self.server.address, "")
            value = value.replace(socket.gethostname(), SHOWN_HOST)
            value = SHOWN_USER if value == getpass.getuser() else value
            return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT] + "…"
        return value

    def check_stored(self, stored):
        """The stored examples: one per operation, each as the schemas want it."""
        for operation_id in sorted(set(self.operations) - set(stored)):
            self.faults.append(f"{operation_id}: has no example in src/api/examples.json; record it: make test-api "
                               "with UPDATE_EXAMPLES=1")
        for operation_id in sorted(set(stored) - set(self.operations)):
            self.faults.append(f"{operation_id}: has an example and is no operation any more")
        for operation_id, example in stored.items():
            if operation_id not in self.operations:
                continue
            _, _, operation = self.operations[operation_id]
            for parameter in operation["parameters"]:
                value = example.get(parameter["in"], {}).get(parameter["name"])
                if value is not None:
                    self.hold(parameter["schema"], value, f"{operation_id}: example of {parameter['name']}")
                elif parameter["required"]:
                    self.faults.append(f"{operation_id}: its example has no {parameter['name']}")
            if "body" in example:
                content = operation["requestBody"]["content"]["application/json"]
                self.hold(content["schema"], example["body"], f"{operation_id}: example of the body")
            content = operation["responses"]["200"].get("content", {}).get("application/json")
            if content and "answer" in example and not isinstance(example["answer"], str):
                self.hold(content["schema"], example["answer"], f"{operation_id}: example of the answer")
        for name, schema in self.description["components"]["schemas"].items():
            if name[-1].isdigit():
                self.faults.append(f"schema {name}: its name ends in a digit; give it a name of its own")
            if schema in (True, {}):
                self.faults.append(f"schema {name}: says nothing")


def one_time_code(secret, at=None):
    key = base64.b32decode(secret + "=" * (-len(secret) % 8))
    counter = struct.pack(">Q", int(at if at is not None else time.time()) // 30)
    digest = hmac.new(key, counter, hashlib.sha1).digest()
    offset = digest[-1] & 15
    number = struct.unpack(">I", digest[offset:offset + 4])[0] & 0x7FFFFFFF
    return f"{number % 1_000_000:06d}"


def next_code(secret, used):
    """A code that was not used yet: each works once."""
    while one_time_code(secret) in used:
        time.sleep(1)
    used.add(one_time_code(secret))
    return one_time_code(secret)


def identity_provider():
    """Serves the two documents that a login at another provider begins with."""

    class Provider(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            issuer = f"http://127.0.0.1:{self.server.server_port}"
            document = {"keys": []} if self.path.endswith("jwks") else {
                "issuer": issuer, "authorization_endpoint": issuer + "/authorize", "token_endpoint": issuer + "/token",
                "jwks_uri": issuer + "/jwks", "response_types_supported": ["code"],
                "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"],
            }
            raw = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_):
            pass

    provider = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{provider.server_port}"


def prepare(server):
    folder = pathlib.Path(server.folder)
    (folder / "dag.yaml").write_text(DEFINITION)
    (folder / "procession.toml").write_text(SETTINGS.format(issuer=identity_provider()))
    server.run("apply", "dag.yaml")
    for number in ("202405", "202406"):
        server.run("run", "--group", "month_end", "--batch-no", number, may_fail=True)
    server.run("run", "--group", "daily", "--batch-no", "20240731")
    server.serve()


def first_user(r):
    """Creates `ann`, who administers everything; the caller with her session."""
    secret = re.findall(r"pcs_[A-Za-z0-9_-]+|\b[A-Za-z0-9_-]{20,}\b", r.server.run("user", "setup-secret"))[-1]
    r.call("getLoginOptions", Caller())
    session = Caller()
    body = {"secret": secret, "name": "ann", "password": PASSWORD, "display_name": "Ann Lee"}
    r.call("createFirstUser", session, body=body)
    logged_in = Caller()
    r.call("logIn", logged_in, body={"name": "ann", "password": PASSWORD})
    r.call("logOut", logged_in)
    r.server.run("user", "set", "ann", "--role", "admin", "--right", "force", "--right", "script")
    # Other grants end the sessions there were.
    session = Caller()
    r.call("logIn", session, body={"name": "ann", "password": PASSWORD})
    return session


def record_accounts(r, ann):
    everything = ["view", "run", "force", "edit", "script", "admin"]
    made = r.call("addToken", ann, body={"name": "night build", "days": 30, "permissions": everything})
    admin = Caller(made["token"])
    r.call("listOwnTokens", admin)
    other = r.call("addToken", ann, body={"name": "old script", "days": 1, "permissions": ["view"]})
    r.call("revokeOwnToken", ann, {"token_id": other["token_id"]})
    r.call("getSession", ann)
    grants = [{"group": "month_end", "role": "operator", "rights": ["force"]}]
    r.call("addUser", ann, body={"name": "bob", "display_name": "Bob Ray", "password": PASSWORD + "-b",
                                "grants": grants + [{"group": "payments", "role": "operator", "rights": []}]})
    r.call("addUser", ann, body={"name": "carl", "password": PASSWORD + "-c", "grants": []})
    return admin


def record_reads(r, admin):
    """What has no side effects, on batches that ran."""
    for operation_id in ("listApprovals", "listAuditEntries", "listBackfills", "listBatches", "listCalendars", "listChangeRequests",
                         "getDashboard", "getDeadlineBoard", "listGroupInsights", "listJobInsights", "getDefinitionSchema", "listExecutorGroups", "listGroups", "listJobs", "listNodes",
                         "listNotifications", "previewRetention", "listRuns", "listSchedules", "listSecrets", "getSettings",
                         "listOwnSessions", "getSecondFactor", "listSnoozes", "listSources", "listUsers"):
        r.call(operation_id, admin)
    r.call("exportAuditEntries", admin, query={"format": "csv"})
    r.call("listCalendarDays", admin, query={"from": "2024-08-01", "to": "2024-08-03", "zone": "Asia/Shanghai"})
    r.call("previewCron", admin, query={"expr": "0 0 18 L * ?", "zone": "Asia/Shanghai", "n": 2})
    r.call("exportDefinition", admin, query={"group": "daily"})
    r.call("previewParams", admin, query={"job": "LOAD_FX", "batch_no": "202406"})
    r.call("search", admin, query={"q": "load"})
    r.call("streamEvents", admin)
    group, batch = {"group": "month_end"}, {"group": "month_end", "batch_no": "202406"}
    for operation_id in ("getBatch", "getBatchDag", "getBatchDifferences", "getBatchEta", "getBatchGantt", "listJobStates",
                         "listBatchReasons", "getBatchDelay"):
        r.call(operation_id, admin, batch)
    job = {**batch, "job": "POST_GL"}
    for operation_id in ("getBatchJob", "listLogLines", "downloadLog"):
        r.call(operation_id, admin, job)
    big = {"group": "daily", "batch_no": "20240731", "job": "BIG"}
    r.call("downloadStoredValue", admin, {**big, "position": 0})
    for operation_id in ("getGroup", "getGroupDag", "getGroupGrid", "getTrend", "listVersions"):
        r.call(operation_id, admin, group)
    r.call("compareBatches", admin, group, {"a": "202405", "b": "202406"})
    r.call("getVersion", admin, {**group, "no": 1})
    r.call("diffVersions", admin, {**group, "no": 0, "other": "1"})
    for operation_id in ("getJob", "getJobHistory", "getJobStats"):
        r.call(operation_id, admin, {"code": "LOAD_FX"})
    nightly = {"code": "nightly"}
    r.call("getSchedule", admin, nightly)
    r.call("listNextFirings", admin, nightly, {"n": 2})
    r.call("getUser", admin, {"name": "bob"})
    r.call("listUserSessions", admin, {"name": "ann"})
    r.call("listUserTokens", admin, {"name": "ann"})


def record_batches(r, admin, bob):
    failed = {"group": "month_end", "batch_no": "202406", "job": "POST_GL"}
    r.call("markFailure", admin, failed, body={"attempt": 1, "acknowledged": True, "assignee": "bob",
                                               "note": "the account is opened tomorrow"})
    r.call("listFailures", admin, query={"state": "all"})
    order = {"group": "month_end", "batch_no": "202407", "reason": "month end"}
    r.call("planBatches", admin, body=order)
    r.call("openBatches", admin, body=order)
    batch = {"group": "month_end", "batch_no": "202407"}
    r.call("pauseBatch", admin, batch, body={"reason": "the rates are late"})
    r.call("resumeBatch", admin, batch, body={"reason": "the rates are here"})
    held = {"action": "hold", "jobs": ["REPORT"]}
    ahead = r.call("actOnJobs", admin, batch, body=held)
    r.call("actOnJobs", admin, batch, body={**held, "seen": ahead["seen"], "reason": "wait for the auditor"}, again=5)
    payments = {"group": "payments", "batch_no": "run-1"}
    r.call("openBatches", admin, body={**payments, "reason": "first run"})
    release = {**payments, "job": "RELEASE"}
    r.call("approveJob", bob, release, body={"comment": "amounts compared with the bank"}, again=20)
    second = {"group": "payments", "batch_no": "run-2"}
    r.call("openBatches", admin, body={**second, "reason": "second run"})
    r.call("rejectJob", bob, {**second, "job": "RELEASE"}, body={"comment": "an amount is wrong"}, again=20)
    r.call("killBatch", admin, second, body={"reason": "wrong amounts"}, again=5)
    r.call("setRunModes", admin, body={"jobs": ["daily.BIG"], "mode": "ice", "reason": "not needed this year"})
    backfill = {"group": "daily", "range": "20240401..20240630", "parallel": 1, "reason": "rates were corrected"}
    r.call("previewBackfill", admin, body=backfill)
    started = r.call("startBackfill", admin, body=backfill)
    one = {"id": started["backfill_id"]}
    r.call("getBackfill", admin, one)
    r.call("stopBackfill", admin, one, body={"reason": "the night begins"}, again=2)
    r.call("resumeBackfill", admin, one, body={"reason": "the night is over"}, again=20)


def record_definitions(r, admin):
    text = ("groups: { daily: { name: Daily load, type: daily } }\n"
            "jobs: { EOD: { group: daily, type: SCRIPT, interpreter: sh, name: End of the day, script: 'echo done' } }\n")
    sent = {"format": "yaml", "text": text}
    for operation_id in ("checkDefinition", "preflightDefinition", "diffDefinition"):
        r.call(operation_id, admin, body=sent)
    r.call("putCalendar", admin, {"code": "cn"}, body={
        "format": "csv", "name": "China", "years": [2024], "reason": "the list of the State Council",
        "text": "date,kind,label\n2024-10-01,off,National Day\n2024-10-12,work,make-up day\n"})
    r.call("applyDefinition", admin, body={**sent, "reason": "a clearer name"})


def record_schedules(r, admin):
    words = {"group": "daily", "cron": "0 30 1 * * ?", "time_zone": "Asia/Shanghai", "batch_no": "day(0)"}
    r.call("previewSchedule", admin, body={"words": words, "n": 2})
    r.call("addSchedule", admin, body={"code": "early", "words": words, "reason": "before the branches open"})
    early = {"code": "early"}
    r.call("replaceSchedule", admin, early, body={"words": {**words, "cron": "0 45 1 * * ?"}, "reason": "later"})
    for operation_id in ("pauseSchedule", "resumeSchedule", "skipNextFiring"):
        r.call(operation_id, admin, early, body={"reason": "maintenance"})
    r.call("fireSchedule", admin, early, body={"batch_no": "20240802", "reason": "the file came early"})
    r.call("sendEvent", admin, {"name": "bank_file"}, body={"key": "file-20240803", "batch_no": "20240803", "reason": "the file came by mail"})
    r.call("listFirings", admin, early)
    r.call("deleteSchedule", admin, early, body={"reason": "no longer needed"})


def record_change_requests(r, admin, bob):
    """Forcing a job of month_end needs a second person (SETTINGS)."""
    requests = []
    for number in ("202405", "202406", "202407"):
        batch = {"group": "month_end", "batch_no": number}
        wish = {"action": "force-success", "jobs": ["POST_GL"]}
        for _ in range(100):
            state = r.call("getBatchJob", admin, {**batch, "job": "POST_GL"})["job"]["status"]
            if state == "FAILED":
                break
            time.sleep(0.2)
        ahead = r.call("actOnJobs", admin, batch, body=wish)
        waiting = r.call("actOnJobs", admin, batch, expect=202,
                         body={**wish, "seen": ahead["seen"], "reason": "booked by hand"})
        requests.append({"change_request_id": waiting["change_request"]["change_request_id"]})
    rejected, alone, approved = requests
    r.call("getChangeRequest", admin, approved)
    r.call("rejectChangeRequest", bob, rejected, body={"comment": "the account is closed"})
    r.call("breakGlass", admin, alone, body={"comment": "nobody else is awake"})
    r.call("approveChangeRequest", bob, approved, body={"comment": "I saw the booking"})


def mark_violation(server, group, job):
    """As a worker does that finds a job committing by itself; SQLite has no procedure that could."""
    with sqlite3.connect(f"{server.folder}/p.db", timeout=20) as db:
        db.execute("INSERT INTO tx_breach (job_code, batch_no, queue_id, attempt, said, create_time, group_code) "
                   "SELECT q.job_code, b.batch_no, q.queue_id, 1, 'it committed by itself', q.create_time, b.group_code "
                   "FROM job_queue q JOIN job_batch b ON b.batch_id = q.batch_id "
                   "WHERE b.group_code = ? AND q.job_code = ? LIMIT 1", (group, job))


def record_administration(r, admin):
    r.call("setCalendarDay", admin, {"code": "cn"}, body={"date": "2024-10-08", "kind": "work", "reason": "as announced"})
    r.call("getCalendar", admin, {"code": "cn"}, {"year": 2024})
    r.call("deleteCalendar", admin, {"code": "cn"}, body={"reason": "not used"})
    secret = {"name": "BOOKS_PW"}
    r.call("putSecret", admin, secret, body={"value": "example", "owner_group": "daily", "reason": "new server"})
    r.call("updateSecretGroups", admin, secret, body={"groups": ["payments"], "reason": "they book as well"})
    r.call("deleteSecret", admin, secret, body={"reason": "the server is gone"})
    app = {"app_name": "pay-executor"}
    r.call("addExecutorGroup", admin, body={**app, "title": "Payments", "owner_group": "payments"})
    r.call("getExecutorGroup", admin, app)
    r.call("listExecutorRuns", admin, app)
    r.call("updateExecutorGroup", admin, app, body={"title": "Payment service"})
    r.call("renewExecutorToken", admin, app)
    r.call("deleteExecutorGroup", admin, app)
    r.call("checkSource", admin, {"name": "books"}, body={"reason": "after the move"})
    r.call("listSourceRoutines", admin, {"name": "books"})
    r.call("runRetention", admin, body={"now": True, "limit": 10, "reason": "disk is short"})
    r.call("rollbackGroup", admin, {"group": "daily"}, body={"to": 1, "reason": "the old name is back"})
    node = {"name": r.call("listNodes", admin)["items"][0]["name"]}
    r.call("drainNode", admin, node, body={"reason": "kernel update"})
    r.call("undrainNode", admin, node, body={"reason": "it is back"})
    mark_violation(r.server, "daily", "EOD")
    r.call("trustJob", admin, {"code": "daily.EOD"}, body={"reason": "its COMMIT is removed"})


def record_notifications(r, admin):
    r.call("sendTestNotification", admin, body={"recipients": ["ann@bank.example"], "reason": "new mail server"})
    items = r.call("listNotifications", admin)["items"]
    first, second = {"id": items[0]["id"]}, {"id": items[1]["id"]}
    r.call("getNotification", admin, first)
    r.call("resendNotification", admin, first, body={"reason": "it was lost"})
    r.call("acknowledgeNotification", admin, second, body={"reason": "known"})
    snooze = r.call("addSnooze", admin, body={"group": "daily", "job": "EOD", "minutes": 60, "reason": "maintenance"})
    r.call("endSnooze", admin, {"id": snooze["id"]}, body={"reason": "done early"})


def record_second_factor(r):
    """Of carl, who loses it in the end, with a session of his own."""
    carl, used = Caller(), set()
    r.call("logIn", carl, body={"name": "carl", "password": PASSWORD + "-c"})
    r.call("changePassword", carl, body={"old": PASSWORD + "-c", "new": PASSWORD + "-d"})
    proof = {"password": PASSWORD + "-d"}
    secret = r.call("enrolSecondFactor", carl, body=proof)["secret"]
    r.call("confirmSecondFactor", carl, body={"code": next_code(secret, used)})
    r.call("renewRecoveryCodes", carl, body={**proof, "code": next_code(secret, used)})
    r.call("disableSecondFactor", carl, body={**proof, "code": next_code(secret, used)})
    secret = r.call("enrolSecondFactor", carl, body=proof)["secret"]
    r.call("confirmSecondFactor", carl, body={"code": next_code(secret, used)})


def record_ends(r, ann, admin):
    """What ends users, sessions and tokens."""
    carl = {"name": "carl"}
    r.call("resetSecondFactor", admin, carl)
    r.call("updateUser", admin, carl, body={"display_name": "Carl Sun", "lang": "zh"})
    r.call("resetPassword", admin, carl)
    r.call("endUserSessions", admin, carl)
    r.call("deleteUser", admin, carl)
    again = Caller()
    r.call("logIn", again, body={"name": "ann", "password": PASSWORD})
    others = [s for s in r.call("listOwnSessions", again)["items"] if not s["is_this"]]
    r.call("endOwnSession", again, {"session_id": others[0]["session_id"]})
    made = r.call("addToken", again, body={"name": "once", "days": 1, "permissions": ["view"]})
    r.call("revokeToken", again, {"token_id": made["token_id"]})
    r.call("startOidcLogin", Caller(), expect=302)
    r.call("finishOidcLogin", Caller(), query={"error": "access_denied", "state": "example"}, expect=302)


def record(server):
    prepare(server)
    r = Recorder(server)
    ann = first_user(r)
    admin = record_accounts(r, ann)
    bob_session = Caller()
    r.call("logIn", bob_session, body={"name": "bob", "password": PASSWORD + "-b"})
    r.call("changePassword", bob_session, body={"old": PASSWORD + "-b", "new": PASSWORD + "-e"})
    made = r.call("addToken", bob_session, body={"name": "bob", "days": 1, "permissions": ["view", "run", "force"]})
    bob = Caller(made["token"])
    record_batches(r, admin, bob)
    record_change_requests(r, admin, bob)
    record_schedules(r, admin)
    record_notifications(r, admin)
    record_second_factor(r)
    record_reads(r, admin)
    record_definitions(r, admin)
    record_administration(r, admin)
    record_ends(r, ann, admin)
    return r


def main():
    program = os.path.abspath(sys.argv[1])
    update = "--update" in sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="procession-examples-") as folder:
        server = Server(program, folder)
        try:
            recorder = record(server)
        finally:
            server.stop()
        missing = sorted(set(recorder.operations) - set(recorder.recorded))
        for operation_id in missing:
            recorder.faults.append(f"{operation_id}: is called by no step of tests/api/examples.py; add one")
        if update:
            text = json.dumps(recorder.recorded, indent=1, ensure_ascii=False, sort_keys=True)
            STORED.write_text(text + "\n")
        recorder.check_stored(json.loads(STORED.read_text()))
    for fault in recorder.faults:
        print(fault, file=sys.stderr)
    if recorder.faults:
        sys.exit(f"examples: {len(recorder.faults)} faults")
    print(f"examples: {len(recorder.recorded)} operations answered as described", file=sys.stderr)


if __name__ == "__main__":
    main()
