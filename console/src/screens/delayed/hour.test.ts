import { expect, test } from "vitest";
import { nextHour } from "./hour";

test("messages of the next hour are counted by five minutes", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const buckets = nextHour(["2025-12-31T23:00:00Z", "2026-01-01T00:04:59Z", "2026-01-01T00:05:00Z", "2026-01-01T00:59:59Z", "2026-01-01T01:00:00Z"], now);
  expect(buckets.map((b) => b.count)).toEqual([2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
  expect(buckets.at(-1)).toMatchObject({ from: 55, to: 60 });
});
