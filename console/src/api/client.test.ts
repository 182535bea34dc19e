import { expect, test } from "vitest";
import { address } from "./client";

test("what stands in a path is escaped", () => {
  expect(address("/api/v1/topics/{topic}/messages/{id}", { path: { topic: "a b", id: "../x?y" } })).toBe(
    "/api/v1/topics/a%20b/messages/..%2Fx%3Fy",
  );
});

test("what is empty is not asked for", () => {
  expect(address("/api/v1/topics", { query: { prefix: "", limit: 50, cursor: undefined } })).toBe("/api/v1/topics?limit=50");
});
