/** Workers and servers that are killed in the middle: nothing is lost, and the order of keys is kept. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Message, Worker } from "../dist/index.js";
import { directory, distinct, eventually, handled, outOfOrder, quiet, readLog, Server, spawnWorker, topic } from "./support.mjs";

const keys = 8;
const each = 15;
const all = keys * each;

describe("crashes", () => {
  let folder;
  let log;
  let name;

  beforeEach(() => {
    folder = directory();
    log = join(folder, "log");
    name = topic();
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  function startWorker(t, pause, hang) {
    const worker = spawnWorker(name, log, pause, hang);
    t.after(() => worker.kill("SIGKILL"));
    return worker;
  }

  function check() {
    const done = handled(log);
    assert.equal(distinct(done), all, "some were lost");
    assert.equal(outOfOrder(done), undefined);
  }

  async function publish(client) {
    await client.receive(name, { wait: 0 }); // the group is there before the first message
    const messages = Array.from({ length: all }, (_, i) => new Message({ n: Math.floor(i / keys) }, { key: `k${i % keys}` }));
    await client.publishMany(name, messages);
  }

  async function terminate(worker) {
    worker.kill("SIGTERM");
    assert.deepEqual(await once(worker, "exit"), [0, null]);
  }

  it("a worker is killed", async (t) => {
    await publish(new Client());
    const first = startWorker(t, 10, 5);
    await eventually(() => readLog(log).filter(({ n }) => n === 5).length === 4, "every handler of the first worker hangs");
    first.kill("SIGKILL");
    await once(first, "exit");
    const second = startWorker(t, 10);
    await eventually(() => distinct(handled(log)) === all, "all are handled");
    await terminate(second);
    check();
  });

  it("SIGTERM lets handlers end", async (t) => {
    const client = new Client();
    await publish(client);
    const worker = startWorker(t, 300);
    await eventually(() => readLog(log).length >= 6, "handlers run");
    await terminate(worker);
    const started = readLog(log).filter(({ what }) => what === "start").map(({ key, n }) => `${key} ${n}`);
    assert.deepEqual(handled(log).map(({ key, n }) => `${key} ${n}`).sort(), started.sort());
    const got = await client.receive(name, { max: 100, wait: 20_000 });
    assert.ok(got.length > 0 && got.every(({ deliveries }) => deliveries === 1));
    assert.ok(got.every(({ key, value }) => !started.includes(`${key} ${value.n}`)));
  });

  it("the server is killed while messages are published and handled", async (t) => {
    const server = await Server.start();
    t.after(() => server.close());
    let noticed = 0;
    const logger = { ...quiet, warn: (line) => (noticed += Number(line.includes("nothing is received"))) };
    const client = new Client({ url: server.url, token: server.token, timeout: 5000 });
    await client.receive(name, { wait: 0 });
    const handle = async (m) => {
      await sleep(20); // so that some are under way when the server is killed
      appendFileSync(log, `${m.key} ${m.value.n} end\n`);
    };
    const worker = new Worker(client, name, handle, { concurrency: 4, lease: "2s", poll: 200, logger });
    const run = worker.run({ signals: false });
    const publishing = (async () => {
      for (let i = 0; i < all; i++) await client.publish(name, { n: Math.floor(i / keys) }, { key: `k${i % keys}` });
    })();
    for (const already of [20, 60]) {
      await eventually(() => handled(log).length >= already, `${already} are handled`);
      const before = noticed;
      await server.kill();
      await eventually(() => noticed > before, "the worker has noticed that the server is away");
      await server.start();
    }
    await publishing;
    await eventually(() => distinct(handled(log)) === all, "all are handled");
    worker.stop();
    await run;
    check();
  });
});
