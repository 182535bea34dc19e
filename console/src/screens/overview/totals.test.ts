import { expect, test } from "vitest";
import { totalsOf } from "./totals";

const zero = { paused: false, consumers: 0, ready: 0, inflight: 0, waiting: 0, dead: 0, delayed: 0, held: 0, invalid: 0, oldest: "0s", in_per_second: 0, out_per_second: 0 };

test("what is published to two groups is counted once", () => {
  const sum = totalsOf([
    { ...zero, topic: "a", delayed: 3, in_per_second: 10 },
    { ...zero, topic: "a", group: "x", ready: 1, waiting: 2, oldest: "1m", in_per_second: 10, out_per_second: 9 },
    { ...zero, topic: "a", group: "y", inflight: 4, oldest: "5s", in_per_second: 10, out_per_second: 8 },
  ]);
  expect(sum).toEqual({ ready: 1, backlog: 3, running: 4, delayed: 3, dead: 0, oldest: 60, in: 10, out: 17 });
});
