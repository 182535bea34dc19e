import { expect, test } from "vitest";
import { joined } from "./points";

const point = (at: number) => ({ at, ready: 0, dead: 0, in: 0, out: 0 });

test("what the stream tells goes on where the server's memory ends, and the oldest go", () => {
  const all = joined([100, 115, 130].map(point), [110, 130, 140, 150].map(point), 40);
  expect(all.map((p) => p.at)).toEqual([115, 130, 140, 150]);
  expect(joined([], [], 300)).toEqual([]);
});
