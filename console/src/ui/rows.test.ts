import { expect, test } from "vitest";
import { places, sorted } from "./rows";

const rows = [2, 10, undefined, 1].map((n) => ({ id: String(n), row: { n, name: `worker-${n ?? ""}` } }));

test("rows are sorted by numbers, and by words with the numbers in them", () => {
  expect(sorted(rows, (row) => row.n, false).map((r) => r.row.n)).toEqual([1, 2, 10, undefined]);
  expect(sorted(rows, (row) => row.n, true).map((r) => r.row.n)).toEqual([undefined, 10, 2, 1]);
  expect(sorted(rows, (row) => row.name, false).map((r) => r.row.n)).toEqual([undefined, 1, 2, 10]);
});

test("rows that are equal stay in the order in which they came", () => {
  expect(sorted(rows, () => Infinity, false)).toEqual(rows);
  expect(sorted(rows, () => Infinity, true)).toEqual(rows);
});

test("a row keeps its place, and one that comes takes that of one which left", () => {
  const first = places(new Map(), ["a", "b", "c"]);
  expect([...first]).toEqual([["a", 0], ["b", 1], ["c", 2]]);
  const second = places(first, ["b", "c", "d"]);
  expect(Object.fromEntries(second)).toEqual({ b: 1, c: 2, d: 0 });
  expect([...places(second, ["x", "y", "z"]).values()]).toEqual([0, 1, 2]);
});
