// An executor made of xxl-job (npm): host.cjs ADMIN APPNAME PORT; the token is in XXL_TOKEN, what arrived goes to
// `seen`. It registers with a path, `/job`.
const { appendFileSync } = require("node:fs");
const { setTimeout: rest } = require("node:timers/promises");
const express = require("express");
const { createXxlJobExecutor } = require("xxl-job");

const [admin, executorKey, port] = process.argv.slice(2);
const seen = (what, run) => {
  const { jobId: job, logId: log, executorParams: param, broadcastIndex: index, broadcastTotal: total } = run;
  appendFileSync("seen", JSON.stringify({ what, job, log, param, index, total }) + "\n");
};
const jobHandlers = new Map([
  ["ok", async (log, run) => {
    seen("ok", run);
    for (const line of ["first line", "第二行：月结完成", "last line"]) log.info(line);
    return "完成";
  }],
  ["fail", async (log, run) => {
    seen("fail", run);
    log.info("about to fail");
    throw new Error("no rates today: 汇率缺失");
  }],
  ["sleep", async (log, run, param) => {
    seen("sleep", run);
    for (const end = Date.now() + Number(param); Date.now() < end; await rest(20)) {
      // It never comes back: 0.1.7 ends a killed run again when its handler ends, and that second end strikes
      // out the next run of the job, if there is one by then, which then never says that it is over.
      if (run.isKill()) await new Promise(() => {});
    }
    seen("slept", run);
  }],
  ["echo", async (log, run, param) => {
    seen("echo", run);
    log.info(`param ${param}, part ${run.broadcastIndex} of ${run.broadcastTotal}`);
  }],
]);

// It asks its admin without looking after what comes of it: without this an admin that is away ends the process.
process.on("unhandledRejection", (error) => console.error(`not handled: ${error.message}`));
const app = express();
app.use(express.json());
const server = app.listen(Number(port), "127.0.0.1", () => {
  const executor = createXxlJobExecutor({
    app, jobHandlers, executorKey, appType: "express", accessToken: process.env.XXL_TOKEN,
    baseUrl: `http://127.0.0.1:${port}`, scheduleCenterUrl: admin.replace(/\/$/, ""), logStorage: "local",
  });
  executor.initialization();
  process.on("SIGTERM", () => executor.cancel().catch(() => {}).then(() => process.exit(0)));
});
server.on("error", (error) => { throw error; });
