import { expect, test } from "vitest";
import { covers } from "./pattern";

test("a grant without patterns is for every topic, and for what belongs to none", () => {
  expect(covers([], "orders")).toBe(true);
  expect(covers([], undefined)).toBe(true);
});

test("a star is any text, everything else is itself", () => {
  expect(covers(["orders.*"], "orders.eu.paid")).toBe(true);
  expect(covers(["orders.*"], "ordersXeu")).toBe(false);
  expect(covers(["orders"], "orders2")).toBe(false);
  expect(covers(["orders"], undefined)).toBe(false);
});
