/** Workers: outcomes, order, leases, and the end of one. */

import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Dead, Drop, Message, Refused, Release, Retry, Worker } from "../dist/index.js";
import { eventually, quiet, topic, Way } from "./support.mjs";

/** watchSettlements is the list of what is sent to be settled from now on: which delivery of its message it is. */
function watchSettlements(client) {
  const sent = [];
  const settle = client.settle.bind(client);
  client.settle = (settlements) => {
    sent.push(...settlements.map(({ delivery }) => delivery.deliveries));
    return settle(settlements);
  };
  return sent;
}

describe("worker", () => {
  const client = new Client();
  let name;

  beforeEach(async () => {
    name = topic();
    await client.receive(name, { wait: 0 }); // the group is there before the first message
  });

  /** working runs a worker meanwhile. */
  async function working(handler, options, meanwhile, through = client) {
    const worker = new Worker(through, name, handler, { poll: 100, logger: quiet, ...options });
    const run = worker.run({ signals: false });
    try {
      await meanwhile(worker);
    } finally {
      worker.stop();
      await run;
    }
  }

  async function deadLetters() {
    const out = [];
    for await (const letter of client.deadLetters(name)) out.push(letter);
    return out;
  }

  it("keeps what handlers return", async () => {
    const handle = (m) => {
      if (m.value === "bytes") return new Message(new Uint8Array([255]), { contentType: "image/png" });
      if (m.value === "nothing") return undefined;
      if (m.attempt === 1 && m.value === "no form") return () => {};
      if (m.attempt === 1 && m.value === "too large") return "x".repeat(64 << 10);
      return { got: m.value };
    };
    const values = ["json", "bytes", "nothing", "no form", "too large"];
    const ids = [];
    for (const value of values) ids.push((await client.publish(name, value, { retry: { delays: [50] } })).id);
    await working(handle, { results: true }, async () => {
      const got = await Promise.all(ids.map((id) => client.wait(name, id, { timeout: 60_000 })));
      const want = [{ got: "json" }, new Uint8Array([255]), null, { got: "no form" }, { got: "too large" }];
      assert.deepEqual(got.map(({ value }) => value), want);
      assert.deepEqual(got.map(({ attempt }) => attempt), [1, 1, 1, 2, 2]);
    });
  });

  it("takes outcomes as exceptions", async () => {
    const seen = [];
    const handle = (m) => {
      const first = !seen.some(([value]) => value === m.value);
      seen.push([m.value, m.attempt]);
      if (m.value === "dead") throw new Dead("card_declined", "no money");
      if (m.value === "drop") throw new Drop();
      if (m.value === "hopeless") throw new Error("never");
      if (first && m.value === "retry") throw new Retry(50);
      if (first && m.value === "release") throw new Release();
      if (first && m.value === "error") throw new Error("lost");
    };
    const retry = { delays: [50] };
    for (const value of ["ack", "retry", "release", "drop", "dead", "error"]) await client.publish(name, value, { retry });
    await client.publish(name, "hopeless", { retry, maxAttempts: 2 });
    await working(handle, {}, () => eventually(async () => seen.length >= 11 && (await deadLetters()).length === 2, "two dead letters"));
    const want = ["ack 1", "dead 1", "drop 1", "error 1", "error 2", "hopeless 1", "hopeless 2", "release 1", "release 1", "retry 1", "retry 2"];
    assert.deepEqual(seen.map(([value, attempt]) => `${value} ${attempt}`).sort(), want);
    const reasons = (await deadLetters()).map(({ value, reason, error }) => `${value}: ${reason}: ${error}`);
    assert.deepEqual(reasons.sort(), ["dead: card_declined: no money", "hopeless: max_attempts: Error: never"]);
  });

  it("publishes follow-ups only if the handler succeeds", async () => {
    const mails = topic();
    await client.receive(mails, { wait: 0 });
    const handle = (m) => {
      m.emit(mails, { attempt: m.attempt }, { key: "ann" });
      if (m.attempt === 1) throw new Retry(0);
    };
    await client.publish(name, "x");
    await working(handle, {}, async () => {
      const [mail] = await client.receive(mails, { wait: 20_000 });
      assert.deepEqual([mail.value, mail.key], [{ attempt: 2 }, "ann"]);
    });
    assert.deepEqual(await client.receive(mails, { wait: 0 }), []);
  });

  it("fails the attempt when a follow-up is refused", async () => {
    for (const [value, wrong] of [["topic", (m) => m.emit("no topic", 1)], ["value", (m) => m.emit(name, 1n)]]) {
      await client.publish(name, value, { maxAttempts: 1 });
      await working(wrong, {}, () => eventually(async () => (await deadLetters()).some((letter) => letter.value === value), "a dead letter"));
    }
    for (const letter of await deadLetters()) assert.match(letter.error, /what it emits or returns is refused/);
  });

  it("handles messages of one key in order, one at a time", async () => {
    const running = new Set();
    const done = {};
    let overlaps = 0;
    const handle = async (m) => {
      if (running.has(m.key)) overlaps++;
      running.add(m.key);
      await sleep(1);
      running.delete(m.key);
      if (m.value % 7 === 3 && m.attempt === 1) throw new Retry(0);
      (done[m.key] ??= []).push(m.value);
    };
    await client.publishMany(name, Array.from({ length: 100 }, (_, n) => new Message(n, { key: `k${n % 5}` })));
    await working(handle, { concurrency: 8 }, () => eventually(() => Object.values(done).flat().length === 100, "all are handled"));
    assert.equal(overlaps, 0);
    for (let k = 0; k < 5; k++) assert.deepEqual(done[`k${k}`], Array.from({ length: 20 }, (_, i) => k + 5 * i));
  });

  it("holds no more than concurrency and prefetch", async () => {
    let started = 0;
    let go;
    const gate = new Promise((resolve) => (go = resolve));
    await client.publishMany(name, Array(20).fill("x"));
    await working(() => (started++, gate), { concurrency: 2, prefetch: 3 }, async () => {
      try {
        await eventually(() => started === 2, "two handlers run");
        assert.ok((await client.receive(name, { max: 100, wait: 1000 })).length >= 15);
        assert.equal(started, 2);
      } finally {
        go();
      }
    });
  });

  it("renews leases as long as a handler runs", async () => {
    const seen = [];
    await client.publish(name, "long");
    const handle = async (m) => {
      await sleep(8000);
      seen.push(m.deliveries);
    };
    await working(handle, { lease: "5s" }, () => eventually(() => seen.length > 0, "it is handled"));
    assert.deepEqual(seen, [1]);
    assert.deepEqual(await client.receive(name, { wait: 0 }), []);
  });

  it("cancels after a lost lease, and never settles", async (t) => {
    const way = await Way.to(process.env.FERRY_BROKER);
    t.after(() => way.close());
    const events = [];
    const handle = async (m) => {
      events.push(`start ${m.deliveries}`);
      if (m.deliveries === 1) {
        way.cut();
        await new Promise((resolve) => m.signal.addEventListener("abort", resolve));
        events.push("cancelled");
        way.mend();
        await sleep(1500); // so that the second delivery is here before the first handler has ended
      }
      events.push(`end ${m.deliveries}`);
    };
    await client.publish(name, "x", { key: "ann" });
    const through = new Client({ url: way.url, timeout: 2000 });
    const settled = watchSettlements(through);
    await working(handle, { lease: "3s" }, () => eventually(() => events.includes("end 2"), "it is handled again"), through);
    assert.deepEqual(events, ["start 1", "cancelled", "end 1", "start 2", "end 2"]);
    assert.deepEqual(settled, [2]);
  });

  it("ends with an error when it may not consume", async () => {
    await assert.rejects(new Worker(new Client({ token: "wrong" }), name, () => {}, { logger: quiet }).run(), Refused);
  });

  it("gives back what has not started when it stops", async () => {
    const started = [];
    const others = [];
    let go;
    const gate = new Promise((resolve) => (go = resolve));
    await client.publishMany(name, [0, 1, 2, 3, 4, 5]);
    await working((m) => (started.push(m.value), gate), { concurrency: 2, lease: "30s" }, async (worker) => {
      try {
        await eventually(() => started.length === 2, "two handlers run");
        worker.stop();
        await eventually(async () => {
          others.push(...(await client.receive(name, { wait: 200 })));
          return others.length === 4;
        }, "the rest is back");
      } finally {
        go();
      }
    });
    assert.deepEqual(others.map(({ deliveries }) => deliveries), [1, 1, 1, 1]);
    assert.deepEqual([...started, ...others.map(({ value }) => value)].sort(), [0, 1, 2, 3, 4, 5]);
  });

  it("gives back what does not end within the drain, once its handler has ended", async () => {
    let started = false;
    const handle = (m) => {
      started = true;
      return new Promise((_, reject) => m.signal.addEventListener("abort", () => reject(m.signal.reason)));
    };
    await client.publish(name, "x");
    await working(handle, { drain: 100, lease: "30s" }, () => eventually(() => started, "it starts"));
    const [again] = await client.receive(name, { wait: 20_000 });
    assert.deepEqual([again.attempt, again.deliveries], [1, 1]);
  });
});
