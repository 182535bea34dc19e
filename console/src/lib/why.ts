import type { Schemas } from "@/api/client";
import type { Tone } from "@/ui/Badge";
import { seconds } from "./duration";

/** Why is the state of a topic or group, and the numbers that its sentence names. */
export interface Why {
  state: "paused" | "noGroup" | "noConsumer" | "busy" | "stuck" | "retrying" | "delayed" | "held" | "idle";
  tone: Tone;
  values: { ready: number; running: number; waiting: number; delayed: number; held: number };
}

/** whyTopic finds what a topic does, or why nothing happens. */
export function whyTopic(topic: Schemas["Topic"]): Why {
  const groups = topic.groups ?? [];
  const values = {
    ready: topic.ready,
    running: topic.inflight,
    waiting: topic.waiting,
    delayed: topic.delayed,
    held: topic.held,
  };
  const alone = groups.filter((g) => g.ready > 0 && g.consumers === 0 && !g.paused);
  if (topic.paused) return { state: "paused", tone: "paused", values };
  if (groups.length === 0) return { state: "noGroup", tone: "warn", values };
  if (alone.length > 0) return { state: "noConsumer", tone: "warn", values: { ...values, ready: alone.reduce((sum, g) => sum + g.ready, 0) } };
  return calm(values, isStuck(topic));
}

/** whyGroup finds what a group does, or why nothing happens. */
export function whyGroup(topic: Schemas["Topic"], group: Schemas["Group"]): Why {
  const values = {
    ready: group.ready,
    running: group.inflight,
    waiting: group.waiting,
    delayed: topic.delayed,
    held: 0,
  };
  if (topic.paused || group.paused) return { state: "paused", tone: "paused", values };
  if (group.consumers === 0 && group.ready + group.waiting > 0) return { state: "noConsumer", tone: "warn", values };
  return calm(values, isStuck(group));
}

const soon = 5; // seconds in which whoever consumes takes a message that is ready

/** isStuck reports whether messages are ready that nobody takes. Between two claims that is so of each group that works, for a moment. */
function isStuck({ ready, inflight, oldest }: Pick<Schemas["Group"], "ready" | "inflight" | "oldest">): boolean {
  const age = seconds(oldest);
  return ready > 0 && inflight === 0 && (age === 0 || age >= soon); // a broker that does not tell the age says 0
}

function calm(values: Why["values"], stuck: boolean): Why {
  if (stuck) return { state: "stuck", tone: "warn", values };
  if (values.ready + values.running > 0) return { state: "busy", tone: "good", values };
  if (values.waiting > 0) return { state: "retrying", tone: "info", values };
  if (values.delayed > 0) return { state: "delayed", tone: "info", values };
  if (values.held > 0) return { state: "held", tone: "info", values };
  return { state: "idle", tone: "info", values };
}
