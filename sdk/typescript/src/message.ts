/** Messages as they are published, and what the server says of them. */

import { randomUUID } from "node:crypto";
import { type Body, writeBody } from "./body.ts";
import { type Duration, toMilliseconds, toText } from "./durations.ts";
import { type FerryError, fromProblem, type Problem } from "./errors.ts";

/** RetryPolicy says when failed attempts are repeated: after `delays`, or after `base` times `factor` each time, up to `cap`. */
export interface RetryPolicy {
  base?: Duration;
  factor?: number;
  cap?: Duration;
  delays?: Duration[];
  /** Defaults to true. */
  jitter?: boolean;
  maxElapsed?: Duration;
}

/** Options are what may be said of a message besides its value. */
export interface Options {
  /** Its id. Defaults to a random one, so that a request that is repeated stores the message once. */
  id?: string;
  /** Messages of one key are handled one after the other, in the order of their publishing. */
  key?: string;
  /** Defaults to application/json, or application/octet-stream for bytes. */
  contentType?: string;
  headers?: Record<string, string>;
  /** Defaults to normal. */
  priority?: "low" | "normal" | "high" | "urgent";
  /** It is not delivered before this time has passed. */
  delay?: Duration;
  /** It is not delivered before this time. */
  at?: Date;
  /** A message that is older is not handled any more, and becomes a dead letter. */
  ttl?: Duration;
  /** Messages with the same one are stored once within `dedupWindow`. */
  dedupId?: string;
  dedupWindow?: Duration;
  /** After so many failed attempts it is dead. Defaults to 10. */
  maxAttempts?: number;
  /** When failed attempts are repeated. Defaults to 1 s and longer each time, up to 10 minutes. */
  retry?: RetryPolicy;
}

/** Message is a value to publish, with what is said of it: bytes go as they are, a string with a content type as text, all else as JSON. */
export class Message {
  constructor(
    readonly value: unknown,
    readonly options: Options = {},
  ) {}
}

/** Receipt is what became of a message that was published. */
export interface Receipt {
  id: string;
  /** The id, or the dedupId, was there before: nothing was stored again. */
  duplicate: boolean;
  /** For how many milliseconds the same id is stored once. */
  idWindow: number;
  /** Why it was not stored. */
  error?: FerryError;
}

/** MessageJSON is a message as the server reads it. */
export type MessageJSON = Body & Record<string, unknown>;

/** newMessage is the message of a value, which may be one. */
export function newMessage(value: unknown, options?: Options): Message {
  if (!(value instanceof Message)) return new Message(value, options);
  if (options) throw new TypeError(`a Message says all of itself: put ${Object.keys(options).join(", ")} into it`);
  return value;
}

/** toMessage is the message of a value, with an id: whatever is repeated has the same one. */
export function toMessage(value: unknown, options?: Options): Message {
  const message = newMessage(value, options);
  return message.options.id ? message : new Message(message.value, { ...message.options, id: randomUUID() });
}

/** messageJSON is the message as the server reads it. The topic is that of a follow-up. */
export function messageJSON(message: Message, topic?: string): MessageJSON {
  const o = message.options;
  const out = {
    id: o.id,
    topic,
    key: o.key,
    headers: o.headers,
    priority: o.priority,
    delay: optional(o.delay),
    at: o.at?.toISOString(),
    ttl: optional(o.ttl),
    dedup_id: o.dedupId,
    dedup_window: optional(o.dedupWindow),
    max_attempts: o.maxAttempts,
    retry: o.retry && retryJSON(o.retry),
  };
  return { ...out, ...writeBody(message.value, o.contentType) };
}

function retryJSON(policy: RetryPolicy): Record<string, unknown> {
  return {
    base: optional(policy.base),
    factor: policy.factor,
    cap: optional(policy.cap),
    delays: policy.delays?.map(toText),
    no_jitter: policy.jitter === false,
    max_elapsed: optional(policy.maxElapsed),
  };
}

function optional(duration: Duration | undefined): string | undefined {
  return duration === undefined ? undefined : toText(duration);
}

/** ReceiptJSON is a receipt as the server writes it. */
export interface ReceiptJSON {
  id?: string;
  duplicate?: boolean;
  id_window?: string;
  error?: Problem;
}

/** toReceipt is the receipt that the server wrote. */
export function toReceipt(json: ReceiptJSON): Receipt {
  const receipt: Receipt = {
    id: json.id ?? "",
    duplicate: json.duplicate ?? false,
    idWindow: toMilliseconds(json.id_window ?? 0),
  };
  return json.error ? failedReceipt(fromProblem(json.error)) : receipt;
}

/** failedReceipt is that of a message that was not stored, or of which that is not known. */
export function failedReceipt(error: FerryError): Receipt {
  return { id: "", duplicate: false, idWindow: 0, error };
}
