// The processes of Graphile Worker:  node graphile.mjs FOLDER ROLE CONTENDER URL NUMBER FILE
// FOLDER is where npm installed graphile-worker. The roles are those of child.py.
import { renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, role, contender, url, number, file] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const worker = require("graphile-worker");
const BULK = 5000;

const now = () => (performance.timeOrigin + performance.now()) / 1000;
const cpu = () => { const used = process.cpuUsage(); return (used.user + used.system) / 1e6; };
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

const count = { jobs: 0, first: 0, last: 0, cpu_first: 0, cpu_last: 0, waited: [] };
const tick = (sent) => {
  count.last = now();
  if (!count.jobs) { count.first = count.last; count.cpu_first = cpu(); }
  count.jobs += 1;
  if (sent) count.waited.push(count.last - sent);
};
const report = () => {
  let written = -1;
  setInterval(() => {
    if (count.jobs === written) return;
    written = count.jobs;
    count.cpu_last = cpu();
    const path = `${file}.${process.pid}`;
    writeFileSync(`${path}.fresh`, JSON.stringify(count));
    renameSync(`${path}.fresh`, path);
  }, 50);
};

const tuned = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const preset = {
  worker: {
    connectionString: url, concurrentJobs: 24, maxPoolSize: 10,
    ...(contender === "graphile-tuned" ? tuned : {}),
  },
};
const logger = new worker.Logger(() => () => {});
const utils = await worker.makeWorkerUtils({ preset, logger, connectionString: url });
const enqueue = (sent) => utils.addJob("job", { sent });

const roles = {
  install: () => utils.migrate(),
  enqueue: async () => {
    for (let i = 0; i < 20; i++) await enqueue(0);
    let jobs = 0; const began = now();
    while (now() - began < Number(number)) { await enqueue(0); jobs += 1; }
    console.log(JSON.stringify({ jobs: jobs + 20, rate: jobs / (now() - began) }));
  },
  "enqueue-bulk": async () => {
    await enqueue(0);
    const began = now();
    for (let start = 0; start < Number(number); start += BULK) {
      const length = Math.min(BULK, Number(number) - start);
      await utils.addJobs(Array.from({ length }, () => ({ identifier: "job", payload: { sent: 0 } })));
    }
    console.log(JSON.stringify({ jobs: Number(number) + 1, rate: Number(number) / (now() - began) }));
  },
  "enqueue-spaced": async () => {
    for (let i = 0; i < Number(number); i++) { await enqueue(now()); await sleep(0.02); }
  },
  work: async () => {
    report();
    const runner = await worker.run({
      preset, logger, noHandleSignals: true, taskList: { job: async (args) => tick(args.sent) },
    });
    await runner.promise;
  },
};
await roles[role]();
process.exit(0);
