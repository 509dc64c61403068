"""An executor made of pyxxl: host.py ADMIN APPNAME PORT; the token is in XXL_TOKEN, what arrived goes to `seen`."""

import asyncio
import json
import os
import sys

from pyxxl import ExecutorConfig, JobHandler, PyxxlRunner
from pyxxl.ctx import g

admin, app, port = sys.argv[1:4]
jobs = JobHandler()


def seen(what):
    run = g.xxl_run_data
    line = {"what": what, "job": run.jobId, "log": run.logId, "param": run.executorParams,
            "index": run.broadcastIndex, "total": run.broadcastTotal}
    with open("seen", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


@jobs.register(name="ok")
async def ok():
    seen("ok")
    for line in ("first line", "第二行：月结完成", "last line"):
        g.logger.info(line)
    return "完成"


@jobs.register(name="fail")
async def fail():
    seen("fail")
    g.logger.info("about to fail")
    raise RuntimeError("no rates today: 汇率缺失")


@jobs.register(name="sleep")
async def sleep():
    seen("sleep")
    await asyncio.sleep(int(g.xxl_run_data.executorParams) / 1000)
    seen("slept")


@jobs.register(name="echo")
async def echo():
    run = g.xxl_run_data
    seen("echo")
    g.logger.info("param %s, part %s of %s", run.executorParams, run.broadcastIndex, run.broadcastTotal)


config = ExecutorConfig(
    xxl_admin_baseurl=admin.rstrip("/") + "/api/",
    executor_app_name=app,
    access_token=os.environ["XXL_TOKEN"],
    executor_listen_host="127.0.0.1",
    executor_listen_port=int(port),
    # By default it gives up after 3 times 5 seconds, and then calls the run a failure, whatever it was.
    http_retry_times=60,
    http_retry_duration=1,
)
PyxxlRunner(config, handler=jobs).run_executor()
