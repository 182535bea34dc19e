import type { Schemas } from "@/api/client";
import { seconds } from "@/lib/duration";

type Message = Schemas["Message"];
type Failure = Schemas["Failure"];

/** Event is something that happened to a message, and how long it waited for it. */
export interface Event {
  kind: "published" | "due" | "lost" | "failed" | "replayed" | "running" | "waiting" | "ready" | "dead" | "done";
  at?: string | undefined;
  /** wait is the seconds since the event before, without the time that a handler took. */
  wait?: number | undefined;
  failure?: Failure;
  /** count is how many attempts are not kept. */
  count?: number;
}

/**
 * timeline is what is known of a message in a group, oldest first. What is not kept any more is an event of its own. Attempts are counted from
 * one again when a dead letter is replayed; when that was is not kept.
 */
export function timeline(m: Message): Event[] {
  const events: Event[] = [{ kind: "published", at: m.published_at }];
  if (m.state === "delayed" || m.state === "held") events.push({ kind: "due", at: m.due_at });
  const failures = m.history ?? [];
  const failed = m.dead?.attempts ?? (m.attempt ?? 1) - 1; // the attempt of what is not dead is the one under way, or the next one
  const missing = failed - failures.length;
  if (missing > 0) events.push({ kind: "lost", count: missing });
  failures.forEach((failure, i) => {
    if (failure.attempt <= (failures[i - 1]?.attempt ?? 0)) events.push({ kind: "replayed" });
    events.push({ kind: "failed", at: failure.at, failure });
  });
  if (!m.dead && (m.attempt ?? Infinity) <= (failures.at(-1)?.attempt ?? 0)) events.push({ kind: "replayed" });
  const now = present(m);
  if (now) events.push(now);
  return events.map((event, i) => ({ ...event, wait: waited(events[i - 1], event, m) }));
}

function present(m: Message): Event | undefined {
  switch (m.state) {
    case "inflight":
      return { kind: "running" };
    case "waiting":
      return { kind: "waiting", at: m.due_at };
    case "ready":
      return { kind: "ready" };
    case "dead":
      return { kind: "dead", at: m.dead?.died_at };
    case "done":
      return { kind: "done", at: m.settled_at };
    default:
      return undefined;
  }
}

function waited(before: Event | undefined, event: Event, m: Message): number | undefined {
  if (!before?.at || !event.at) return undefined;
  const took = event.kind === "done" ? seconds(m.took) : seconds(event.failure?.duration);
  return Math.max(0, (Date.parse(event.at) - Date.parse(before.at)) / 1000 - took);
}
