"""An executor made of Flask-XXLJob: host.py ADMIN APPNAME PORT; the token is in XXL_TOKEN, what arrived goes to
`seen`. The library runs nothing itself: threads, kills and logs are of here, one run of a job at a time."""

import json
import os
import signal
import sys
import threading

from flask import Flask
from flask_xxljob import FlaskXXLJob, LogResponse, XXLJobResponse

admin, app_name, port = sys.argv[1:4]
app = Flask(__name__)
app.config.update(
    XXL_JOB_ADMIN_ADDRESSES=[admin.rstrip("/")],
    XXL_JOB_ACCESS_TOKEN=os.environ["XXL_TOKEN"],
    XXL_JOB_EXECUTOR_APP_NAME=app_name,
    XXL_JOB_EXECUTOR_ADDRESS=f"http://127.0.0.1:{port}",
    XXL_JOB_AUTO_REGISTER=False,
    XXL_JOB_REGISTRY_INTERVAL=10,
    XXL_JOB_ADMIN_RETRY_COUNT=3,
    XXL_JOB_ADMIN_RETRY_BACKOFF=1.0,
)
xxl = FlaskXXLJob(app)
logs, running, lock = {}, {}, threading.Lock()


def seen(what, run):
    line = {"what": what, "job": run.job_id, "log": run.log_id, "param": run.executor_params,
            "index": run.broadcast_index, "total": run.broadcast_total}
    with open("seen", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def ok(run, say, stop):
    for line in ("first line", "第二行：月结完成", "last line"):
        say(line)
    return "完成"


def fail(run, say, stop):
    say("about to fail")
    raise RuntimeError("no rates today: 汇率缺失")


def sleep(run, say, stop):
    if stop.wait(int(run.executor_params) / 1000):
        raise RuntimeError("killed")
    seen("slept", run)


def echo(run, say, stop):
    say(f"param {run.executor_params}, part {run.broadcast_index} of {run.broadcast_total}")


def work(handler, run, stop):
    code, words = 200, None
    try:
        words = handler(run, logs.setdefault(run.log_id, []).append, stop)
    except Exception as error:
        code, words = 500, str(error)
    with lock:
        running.pop(run.job_id, None)
    xxl.callback(run.log_id, run.log_date_time, code, words, app=app)


def start(handler):
    def begin(run):
        with lock:
            if run.job_id in running:
                return XXLJobResponse.failure("busy")
            stop = running[run.job_id] = threading.Event()
        seen(handler.__name__, run)
        threading.Thread(target=work, args=(handler, run, stop), daemon=True).start()
        return XXLJobResponse.success()

    return begin


for job in (ok, fail, sleep, echo):
    xxl.on_run(job.__name__)(start(job))


@xxl.on_idle_beat
def idle(ask):
    return XXLJobResponse.failure("busy") if ask.job_id in running else XXLJobResponse.success()


@xxl.on_kill
def kill(ask):
    with lock:
        stop = running.get(ask.job_id)
    if stop is not None:
        stop.set()
    return XXLJobResponse.success()


@xxl.on_log
def log(ask):
    first = max(ask.from_line_num, 1)
    lines = logs.get(ask.log_id, [])[first - 1:]
    content = "".join(line + "\n" for line in lines)
    return LogResponse(first, first + len(lines) - 1, content, False)


def goodbye(*_):
    # What the library does at exit it does in the background, which ends with the process.
    xxl.stop_registry(app)
    xxl.remove_executor(app)
    sys.exit(0)


signal.signal(signal.SIGTERM, goodbye)
xxl.start_registry(app)
app.run(host="127.0.0.1", port=int(port), threaded=True)
