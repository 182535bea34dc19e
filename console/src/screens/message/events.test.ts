import { expect, test } from "vitest";
import { timeline } from "./events";

const at = (s: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, s)).toISOString();
const failure = (attempt: number, s: number) => ({ attempt, at: at(s), duration: "2s", reason: "error", error: "timeout" });

test("a dead message has its attempts, and the waits between them", () => {
  const events = timeline({
    topic: "t",
    state: "dead",
    published_at: at(0),
    history: [failure(1, 3), failure(2, 15)],
    dead: { attempts: 2, died_at: at(15), reason: "error" } as never,
  });
  expect(events.map((e) => e.kind)).toEqual(["published", "failed", "failed", "dead"]);
  expect(events.map((e) => e.wait)).toEqual([undefined, 1, 10, 0]);
});

test("attempts that are not kept are said, not hidden", () => {
  const events = timeline({ topic: "t", state: "waiting", attempt: 13, published_at: at(0), due_at: at(60), history: [failure(11, 20), failure(12, 30)] });
  expect(events.map((e) => e.kind)).toEqual(["published", "lost", "failed", "failed", "waiting"]);
  expect(events[1]?.count).toBe(10);
});

test("what is delayed is due, and nothing else happened", () => {
  expect(timeline({ topic: "t", state: "delayed", published_at: at(0), due_at: at(9) }).map((e) => [e.kind, e.wait])).toEqual([
    ["published", undefined],
    ["due", 9],
  ]);
});

test("a replay is between attempts that are counted from one again", () => {
  const events = timeline({ topic: "t", state: "dead", published_at: at(0), history: [failure(1, 3), failure(1, 15)], dead: { attempts: 1, died_at: at(15), reason: "error" } as never });
  expect(events.map((e) => e.kind)).toEqual(["published", "failed", "replayed", "failed", "dead"]);
});

test("a message that nobody has tried yet lacks no attempt", () => {
  for (const state of ["ready", "inflight", "done"] as const) {
    const kinds = timeline({ topic: "t", state, attempt: 1, published_at: at(0) }).map((e) => e.kind);
    expect(kinds).toEqual(["published", state === "inflight" ? "running" : state]);
  }
  const retried = timeline({ topic: "t", state: "waiting", attempt: 2, published_at: at(0), due_at: at(9), history: [failure(1, 3)] });
  expect(retried.map((e) => e.kind)).toEqual(["published", "failed", "waiting"]);
});

test("a letter that was replayed is on its way again, with what it died of before", () => {
  const events = timeline({ topic: "t", state: "done", attempt: 1, published_at: at(0), settled_at: at(9), took: "1s", history: [failure(1, 3)] });
  expect(events.map((e) => e.kind)).toEqual(["published", "failed", "replayed", "done"]);
});
