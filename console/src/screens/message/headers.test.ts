import { expect, test } from "vitest";
import { changed, read, written } from "./headers";

test("headers survive being edited as lines", () => {
  const headers = { a: "1", url: "http://x:1/" };
  expect(read(written(headers))).toEqual(headers);
  expect(read("lonely\n\n b :  c ")).toEqual({ lonely: "", b: "c" });
});

test("only what an edit changes is sent", () => {
  expect(changed({ a: "1", b: "2", c: "3" }, { a: "1", b: "9", d: "4" })).toEqual({ b: "9", d: "4", c: "" });
});
