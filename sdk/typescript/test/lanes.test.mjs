/** Which delivery starts next. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Delivery } from "../dist/index.js";
import { Lanes } from "../dist/lanes.js";
import { Held } from "../dist/leases.js";

function held(id, key) {
  const json = { id, key, topic: "t", group: "g", attempt: 1, deliveries: 1, lease: id, lease_for: "10s", json: null };
  return new Held(new Delivery(json));
}

describe("lanes", () => {
  it("let a key wait for its handler, and no other", () => {
    const lanes = new Lanes();
    const [first, second, third, other, free] = [held("1", "k"), held("2", "k"), held("3", "k"), held("4", "o"), held("5", "")];
    for (const one of [first, second, third, other, free]) lanes.add(one);
    assert.deepEqual([lanes.next(), lanes.next(), lanes.next(), lanes.next()], [first, other, free, undefined]);
    lanes.done(first);
    assert.deepEqual([lanes.next(), lanes.next()], [second, undefined]);
    assert.deepEqual(lanes.clear(), [third]);
    lanes.done(second);
    assert.equal(lanes.next(), undefined);
  });

  it("do not start what is lost", () => {
    const lanes = new Lanes();
    const [lost, good] = [held("1", "k"), held("2", "k")];
    lanes.add(lost);
    lanes.add(good);
    lost.lost = true;
    assert.deepEqual([lanes.next(), lanes.next()], [good, undefined]);
  });
});
