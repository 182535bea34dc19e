import { expect, test } from "vitest";
import { diff } from "./diff";

const short = (before: string, after: string) => diff(before, after).map(({ kind, line }) => ({ same: " ", old: "-", new: "+" })[kind] + line);

test("lines are the same, gone or new", () => {
  expect(short("a\nb\nc", "a\nx\nc")).toEqual([" a", "-b", "+x", " c"]);
  expect(short("a", "a\nb")).toEqual([" a", "+b"]);
  expect(short("a\nb", "b")).toEqual(["-a", " b"]);
  expect(short("a", "a")).toEqual([" a"]);
});

test("long texts are not compared", () => {
  const long = "x\n".repeat(1500);
  expect(diff(long, `${long}y`).some(({ kind }) => kind === "same")).toBe(false);
});
