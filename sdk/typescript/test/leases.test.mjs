/** What renewals say, and what they cannot know. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Delivery, LeaseLost } from "../dist/index.js";
import { Leases } from "../dist/leases.js";
import { eventually, quiet } from "./support.mjs";

describe("leases", () => {
  it("take nothing from a renewal that crosses a settlement", async (t) => {
    const forgetful = { extend: async (deliveries) => deliveries.map(() => new LeaseLost("it is not held")) };
    const leases = new Leases(forgetful, quiet, () => {});
    t.after(() => leases.end());
    const json = { id: "1", topic: "t", group: "g", attempt: 1, deliveries: 1, lease: "1", lease_for: "30s", json: null };
    const [settling, running] = [leases.add(new Delivery(json)), leases.add(new Delivery(json))];
    settling.settling = true;
    for (const held of [settling, running]) held.until -= 15_000; // half of it is over: it is due
    await eventually(() => running.lost, "a lease is lost");
    assert.deepEqual([settling.lost, settling.delivery.signal.aborted, running.delivery.signal.aborted], [false, false, true]);
  });
});
