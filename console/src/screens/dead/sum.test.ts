import { expect, test } from "vitest";
import { added } from "./sum";

test("answers add up, kind by kind", () => {
  const page = (count: number, day: string, scanned: number) => ({
    buckets: [{ count, bytes: 1, fingerprint: "timeout", topic: "t", group: "g", first_died: day, last_died: day }],
    matched: count,
    scanned,
    total: 30,
    others: 0,
    faulty: 0,
  });
  const sum = added([page(10, "2026-02-01", 10), page(5, "2026-01-01", 20)] as never);
  expect(sum.buckets).toEqual([
    { count: 15, bytes: 2, fingerprint: "timeout", topic: "t", group: "g", first_died: "2026-01-01", last_died: "2026-02-01" },
  ]);
  expect([sum.matched, sum.scanned, sum.total]).toEqual([15, 20, 30]);
});
