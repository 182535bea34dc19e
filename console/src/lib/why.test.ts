import { expect, test } from "vitest";
import type { Schemas } from "@/api/client";
import { whyGroup, whyTopic } from "./why";

const group = { group: "default", ready: 2, inflight: 0, waiting: 0, consumers: 1, paused: false, oldest: "29ms" } as Schemas["Group"];
const topic = { topic: "orders", ready: 2, inflight: 0, waiting: 0, delayed: 0, held: 0, paused: false, oldest: "29ms", groups: [group] } as unknown as Schemas["Topic"];

test("a group that works is not called held back between two claims", () => {
  expect(whyGroup(topic, group).state).toBe("busy");
  expect(whyTopic(topic).state).toBe("busy");
});

test("a group whose messages are ready and nobody takes is held back", () => {
  for (const oldest of ["5s", "1m0s", "0s"]) {
    expect(whyGroup(topic, { ...group, oldest }).state).toBe("stuck");
    expect(whyTopic({ ...topic, oldest }).state).toBe("stuck");
  }
  expect(whyGroup(topic, { ...group, oldest: "1m0s", consumers: 0 }).state).toBe("noConsumer");
  expect(whyGroup(topic, { ...group, oldest: "1m0s", paused: true }).state).toBe("paused");
});

test("a topic of which nobody consumes a group says how much waits in that one", () => {
  const alone = { ...group, group: "late", ready: 3, consumers: 0 };
  expect(whyTopic({ ...topic, ready: 5, groups: [group, alone] })).toMatchObject({ state: "noConsumer", values: { ready: 3 } });
});
