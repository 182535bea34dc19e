import { expect, test } from "vitest";
import { both, couldBeID, ofKind, onDay, searchOf } from "./condition";

const all = { bodies: true, headers: true };

test.each([
  ["", "all"],
  ["user-7", "text"],
  ["timeout to billing", "text"],
  ['key == "ann"', "expression"],
  ["attempts > 3", "expression"],
  ['error contains "timeout"', "expression"],
  ["this contains nothing", "text"],
  ['"attempts == 3"', "text"],
])("%s is %s", (typed, kind) => expect(searchOf(typed, all).kind).toBe(kind));

test("a text is quoted, and asks for bodies only where they may be seen", () => {
  expect(searchOf('a"b\\', all).where).toContain(String.raw`body contains "a\"b\\"`);
  expect(searchOf("x", { ...all, bodies: false }).where).not.toContain("body");
  expect(searchOf("x", { ...all, headers: false }).where).not.toContain("headers");
});

test("an id has no spaces and no operators", () => {
  expect(couldBeID("0199-ab")).toBe(true);
  expect(couldBeID("a b")).toBe(false);
  expect(couldBeID('id=="a"')).toBe(false);
});

test("a kind of error is added to any condition", () => {
  expect(ofKind("", 'a "b"')).toBe(String.raw`fingerprint == "a \"b\""`);
  expect(ofKind("x == 1 or y == 2", "k")).toBe('(x == 1 or y == 2) and fingerprint == "k"');
  expect(ofKind("x == 1", undefined)).toBe("x == 1");
});

test("a day is a condition beside others", () => {
  expect(both('key == "a" or key == "b"', onDay("2026-12-31"))).toBe('(key == "a" or key == "b") and died_at >= date("2026-12-31") and died_at < date("2027-01-01")');
});
