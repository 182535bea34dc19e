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

/** timeline is what is known of a message in a group, oldest first. What is not kept any more is an event of its own. */
export function timeline(m: Message): Event[] {
  const events: Event[] = [{ kind: "published", at: m.published_at }];
  if (m.state === "delayed" || m.state === "held") events.push({ kind: "due", at: m.due_at });
  const failures = m.history ?? [];
  const made = m.dead?.attempts ?? Math.max(0, (m.attempt ?? 0) - (m.state === "inflight" || m.state === "done" ? 1 : 0));
  const missing = made - failures.length;
  if (missing > 0) events.push({ kind: "lost", count: missing });
  failures.forEach((failure, i) => {
    // Attempts are counted from one again when a dead letter is replayed; when that was is not kept.
    if (failure.attempt <= (failures[i - 1]?.attempt ?? 0)) events.push({ kind: "replayed" });
    events.push({ kind: "failed", at: failure.at, failure });
  });
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
