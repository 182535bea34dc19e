/** Dead letters, by the admin API: a token with the scope view sees them, one with operate replays them. */

import { type Body, readBody } from "./body.ts";

/** DeadLetter is a message that was given up, with why. */
export interface DeadLetter {
  id: string;
  topic: string;
  group: string;
  key: string;
  /** The body, or undefined if the token lacks the scope payload (`hidden`). */
  value: unknown;
  headers: Record<string, string>;
  hidden: boolean;
  reason: string;
  error: string;
  attempts: number;
  /** What could be done about it. */
  action: string;
  diedAt?: Date;
}

/** Replay is what a replay did, or would do. */
export interface Replay {
  done: number;
  skipped: number;
  /** What was skipped, by reason. */
  why: Record<string, number>;
}

/** Selection says which dead letters are meant: those of a group, and those that a filter such as `reason == "timeout"` selects. */
export interface Selection {
  group?: string;
  where?: string;
}

/** DeadLetterJSON is a dead letter as the server writes it. */
export interface DeadLetterJSON extends Body {
  id: string;
  topic: string;
  group?: string;
  key?: string;
  headers?: Record<string, string>;
  hidden?: boolean;
  dead?: { reason: string; error: string; attempts: number; action: string; died_at?: string };
}

/** toDeadLetter is the dead letter that the server wrote. */
export function toDeadLetter(json: DeadLetterJSON): DeadLetter {
  const hidden = json.hidden ?? false;
  return {
    id: json.id,
    topic: json.topic,
    group: json.group ?? "",
    key: json.key ?? "",
    value: hidden ? undefined : readBody(json),
    headers: json.headers ?? {},
    hidden,
    reason: json.dead?.reason ?? "",
    error: json.dead?.error ?? "",
    attempts: json.dead?.attempts ?? 0,
    action: json.dead?.action ?? "",
    ...(json.dead?.died_at && { diedAt: new Date(json.dead.died_at) }),
  };
}

/** toReplay is the report that the server wrote. */
export function toReplay(json: { done: number; skipped: number; why?: Record<string, number> }): Replay {
  return { done: json.done, skipped: json.skipped, why: json.why ?? {} };
}
