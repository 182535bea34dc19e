import { expect, test } from "vitest";
import { draftOf, ruleOf } from "./rule";

test("a rule that is opened and kept is the same", () => {
  const rule = { limit: 10, window: "1m0s", burst: 3, penalty: { after: 5, block: "10m0s", factor: 2, max: "1h0m0s", history: "24h0m0s" } };
  expect(ruleOf(draftOf(rule))).toEqual(rule);
  expect(ruleOf(draftOf({ unlimited: true }))).toEqual({ unlimited: true });
});

test("what is left empty is left out", () => {
  expect(ruleOf({ ...draftOf(), limit: "100" })).toEqual({ limit: 100, window: "1m" });
});
