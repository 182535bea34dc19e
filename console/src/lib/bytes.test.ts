import { expect, test } from "vitest";
import { bytesOf, hex } from "./bytes";

test("a dump has a place, bytes and characters", () => {
  expect(hex(new TextEncoder().encode("ab\n"))).toBe(`00000000  61 62 0a${" ".repeat(39)}  ab.`);
  expect(hex(new Uint8Array(17)).split("\n")[1]).toMatch(/^00000010 {2}00 /);
});

test("what is no base64 is nothing", () => {
  expect([...bytesOf("AP8=")]).toEqual([0, 255]);
  expect([...bytesOf("%")]).toEqual([]);
});
