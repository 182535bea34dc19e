import { expect, test } from "vitest";
import { lagOf } from "./lag";

test("the time to zero follows from what comes and goes", () => {
  expect(lagOf(100, { in_per_second: 5, out_per_second: 15 })).toEqual({ trend: "falling", zero: 10 });
  expect(lagOf(100, { in_per_second: 15, out_per_second: 5 })).toEqual({ trend: "rising", zero: undefined });
  expect(lagOf(100, { in_per_second: 5, out_per_second: 5 })).toEqual({ trend: "steady", zero: undefined });
  expect(lagOf(0, { in_per_second: 1, out_per_second: 3 })).toEqual({ trend: "steady", zero: 0 });
  expect(lagOf(0, { in_per_second: 3, out_per_second: 1 })).toEqual({ trend: "steady", zero: 0 });
  expect(lagOf(7, undefined)).toEqual({ trend: "steady", zero: undefined });
});
