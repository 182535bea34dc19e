/** A worker in a process of its own: worker_process.mjs TOPIC LOG MILLISECONDS HANG. It hangs at messages with the number HANG. */

import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Worker } from "../dist/index.js";

const [, , topic, log, pause, hang] = process.argv;

async function handle(m) {
  appendFileSync(log, `${m.key} ${m.value.n} start\n`);
  if (m.value.n === Number(hang)) await new Promise(() => {});
  await sleep(Number(pause));
  appendFileSync(log, `${m.key} ${m.value.n} end\n`);
}

await new Worker(new Client(), topic, handle, { concurrency: 4, lease: "6s", poll: 200 }).run();
