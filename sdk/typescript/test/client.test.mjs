/** Publishing, receiving without a worker, results and dead letters. */

import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { BatchError, Client, FailedError, Invalid, Message, NotApplied, Refused, TimeoutError } from "../dist/index.js";
import { topic, Way } from "./support.mjs";

describe("client", () => {
  const client = new Client();
  let name;

  beforeEach(async () => {
    name = topic();
    assert.deepEqual(await client.receive(name, { wait: 0 }), []); // the group is there before the first message
  });

  async function receiveOne() {
    const [delivery] = await client.receive(name, { max: 1, wait: 20_000 });
    assert.deepEqual(await client.settle([{ delivery }]), [undefined]);
    return delivery;
  }

  it("carries every kind of body", async () => {
    const bytes = (text) => new TextEncoder().encode(text);
    for (const [value, contentType, want] of [
      [{ 名字: "摆渡", n: 1 }, undefined, { 名字: "摆渡", n: 1 }],
      [null, undefined, null],
      ["text", undefined, "text"],
      ["文本", "text/plain", bytes("文本")],
      [new Uint8Array([0, 255]), undefined, new Uint8Array([0, 255])],
      [new Uint8Array(), "image/png", new Uint8Array()],
      [[], undefined, []],
    ]) {
      await client.publish(name, value, { contentType });
      assert.deepEqual((await receiveOne()).value, want);
    }
  });

  it("carries everything that can be said of a message", async () => {
    const id = `order-${name}`;
    const headers = { trace: "7f", name: "摆渡" };
    const sent = new Message({ id: 1 }, { id, key: "ann 安", headers, priority: "high", ttl: "1h", maxAttempts: 3, retry: { base: "1s", cap: 60_000 } });
    const receipt = await client.publish(name, sent);
    assert.equal(receipt.id, id);
    assert.equal(receipt.duplicate, false);
    assert.ok(receipt.idWindow > 30_000);
    assert.equal((await client.publish(name, sent)).duplicate, true);
    const got = await receiveOne();
    assert.deepEqual([got.id, got.key, got.headers, got.attempt, got.group], [id, "ann 安", headers, 1, "default"]);
    assert.ok(got.publishedAt instanceof Date);
  });

  it("delivers nothing early that is delayed or scheduled", async () => {
    const due = { later: Date.now() + 1500, at: Date.now() + 1000 };
    await client.publish(name, "later", { delay: 1500 });
    await client.publish(name, "at", { at: new Date(due.at) });
    for (let i = 0; i < 2; i++) {
      const { value } = await receiveOne();
      assert.ok(Date.now() + 10 >= due[value], value);
      delete due[value];
    }
  });

  it("deduplicates", async () => {
    const first = await client.publish(name, "now", { dedupId: "cart", dedupWindow: "1m" });
    const second = await client.publish(name, "now", { dedupId: "cart", dedupWindow: "1m" });
    assert.deepEqual([first.duplicate, second.duplicate], [false, true]);
    assert.equal((await receiveOne()).value, "now");
    assert.deepEqual(await client.receive(name, { wait: 0 }), []);
  });

  it("stores a batch in order, with one receipt each", async () => {
    const messages = Array.from({ length: 2500 }, (_, n) => new Message(n, { key: "k", id: `${name}-${n}` }));
    const receipts = await client.publishMany(name, messages);
    assert.deepEqual(receipts.map(({ id }) => id), messages.map(({ options }) => options.id));
    for (const n of [0, 1, 2]) assert.equal((await receiveOne()).value, n);
    assert.deepEqual(await client.publishMany(name, []), []);
  });

  it("tells of each message of a batch that was not stored", async () => {
    const error = await client.publishMany(name, ["a", new Message("wrong", { priority: "top" }), "b"]).catch((error) => error);
    assert.ok(error instanceof BatchError);
    assert.deepEqual(error.receipts.map((receipt) => receipt.error?.code), [undefined, "invalid", undefined]);
    assert.deepEqual([(await receiveOne()).value, (await receiveOne()).value].sort(), ["a", "b"]);
  });

  it("stores once what it publishes again because an answer was lost", async (t) => {
    const way = await Way.to(process.env.FERRY_BROKER);
    t.after(() => way.close());
    const through = new Client({ url: way.url });
    way.losing = 1;
    assert.equal((await through.publish(name, "one")).duplicate, true);
    way.losing = 1;
    assert.ok((await through.publishMany(name, ["two", "three"])).every(({ duplicate }) => duplicate));
    const values = [(await receiveOne()).value, (await receiveOne()).value, (await receiveOne()).value];
    assert.deepEqual(values.sort(), ["one", "three", "two"]);
    assert.deepEqual(await client.receive(name, { wait: 0 }), []);
  });

  it("says that nothing was stored by a server that is away", async () => {
    const way = await Way.to(process.env.FERRY_BROKER);
    way.close(); // nobody listens there any more
    const away = new Client({ url: way.url, retryFor: 200 });
    await assert.rejects(away.publish(name, "x"), NotApplied);
    const error = await away.publishMany(name, Array(1500).fill(0)).catch((error) => error);
    assert.equal(error.receipts.length, 1500);
    assert.ok(error.receipts.every((receipt) => receipt.error instanceof NotApplied));
  });

  it("extends and settles", async () => {
    await client.publish(name, "x");
    const [delivery] = await client.receive(name, { wait: "20s", lease: "5s" });
    assert.deepEqual(await client.extend([delivery]), [undefined]);
    assert.deepEqual(await client.settle([{ delivery, outcome: "retry", after: 0 }]), [undefined]);
    const [lost] = await client.settle([{ delivery }]);
    assert.equal(lost.code, "lease_lost");
    assert.equal((await receiveOne()).attempt, 2);
  });

  it("waits for results", async () => {
    const done = await client.publish("reports", { n: 21 });
    const result = await client.wait("reports", done.id, { timeout: 30_000 });
    assert.deepEqual([result.state, result.value, result.ended], ["done", 42, true]);
    const failed = await client.publish("reports", { n: -1 });
    const error = await client.wait("reports", failed.id, { timeout: 30_000 }).catch((error) => error);
    assert.ok(error instanceof FailedError);
    assert.match(error.result.error, /negative/);
    const later = await client.publish(name, "later", { delay: "1m" });
    assert.equal((await client.result(name, later.id)).state, "waiting");
    await assert.rejects(client.wait(name, later.id, { timeout: 200 }), TimeoutError);
  });

  it("browses and replays dead letters", async () => {
    await client.publishMany(name, [0, 1, 2]);
    const deliveries = [];
    while (deliveries.length < 3) deliveries.push(...(await client.receive(name, { wait: 20_000 })));
    await client.settle(deliveries.map((delivery) => ({ delivery, outcome: "dead", reason: "card_declined", error: "no money" })));
    const letters = await collect(client.deadLetters(name));
    assert.deepEqual(letters.map(({ value }) => value).sort(), [0, 1, 2]);
    assert.deepEqual([letters[0].reason, letters[0].error, letters[0].attempts], ["card_declined", "no money", 1]);
    assert.equal((await collect(client.deadLetters(name, { where: "json == 1" }))).length, 1);
    assert.equal((await client.replay(letters[0])).done, 1);
    assert.equal((await receiveOne()).id, letters[0].id);
    assert.equal((await client.replayMany(name, { where: 'reason == "card_declined"', dryRun: true, timeout: "30s" })).done, 2);
    assert.equal((await client.replayMany(name, { timeout: "30s" })).done, 2);
    assert.deepEqual(await collect(client.deadLetters(name)), []);
  });

  it("refuses bad input", async () => {
    await assert.rejects(client.publish(name, undefined), TypeError);
    await assert.rejects(client.publish(name, 1n), TypeError);
    await assert.rejects(client.publish(name, new Message(1), { key: "beside" }), TypeError);
    await assert.rejects(client.publish("no topic", 1), Invalid);
    await assert.rejects(client.publish(name, 1, { delay: "soon" }), Invalid);
    await assert.rejects(client.receive(name, { max: 5000 }), Invalid);
    await assert.rejects(new Client({ token: "wrong" }).publish(name, 1), Refused);
    for (const url of ["localhost:7070", "redis://localhost", "http://ann:secret@localhost", "http://localhost?token=x"]) {
      assert.throws(() => new Client({ url }), Invalid, url);
    }
    for (const options of [{ token: "" }, { token: "a\r\nb" }, { token: "a", tokenFile: "b" }]) {
      assert.throws(() => new Client(options), Invalid, JSON.stringify(options));
    }
    assert.throws(() => new Client({ tokenFile: "/nowhere" }), /ENOENT/);
  });
});

async function collect(generator) {
  const out = [];
  for await (const value of generator) out.push(value);
  return out;
}
