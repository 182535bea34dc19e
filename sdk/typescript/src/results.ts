/** Results: how far a message is, and what its handler returned. */

import { type Body, readBody } from "./body.ts";

/** Result is what is known of a message in a group. */
export interface Result {
  state: "waiting" | "running" | "retrying" | "done" | "failed" | "cancelled";
  /** Nothing more is to come. */
  ended: boolean;
  /** What the handler returned, when it is done. */
  value: unknown;
  attempt: number;
  /** Why the last attempt failed. */
  error: string;
  progress?: { done: number; total: number; note?: string };
  at?: Date;
}

/** ResultJSON is a result as the server writes it. */
export interface ResultJSON extends Body {
  state: Result["state"];
  ended: boolean;
  attempt?: number;
  error?: string;
  progress?: { done: number; total: number; note?: string };
  at?: string;
}

/** toResult is the result that the server wrote. */
export function toResult(json: ResultJSON): Result {
  const hasBody = "json" in json || "body" in json || "body_base64" in json;
  return {
    state: json.state,
    ended: json.ended,
    value: hasBody ? readBody(json) : undefined,
    attempt: json.attempt ?? 0,
    error: json.error ?? "",
    ...(json.progress && { progress: json.progress }),
    ...(json.at && { at: new Date(json.at) }),
  };
}
