import { expect, test } from "vitest";
import { obeys } from "./breaker";

test("a breaker obeys when it shows what it was asked for", () => {
  expect(obeys({ state: "open", forced: true }, "open")).toBe(true);
  expect(obeys({ state: "open", forced: false }, "open")).toBe(false); // it is open by itself
  expect(obeys({ state: "open", forced: true }, "closed")).toBe(false);
  expect(obeys({ state: "open", forced: true }, "auto")).toBe(false);
  expect(obeys({ state: "half_open", forced: false }, "auto")).toBe(true);
});
