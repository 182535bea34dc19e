/** Deliveries: messages that are ours for the time of a lease, and how they end. */

import { type Body, readBody, writeBody } from "./body.ts";
import { type Duration, toMilliseconds, toText } from "./durations.ts";
import { type Message, messageJSON, newMessage, type Options } from "./message.ts";

/** DeliveryJSON is a delivery as the server writes it. */
export interface DeliveryJSON extends Body {
  lease: string;
  lease_for: string;
  attempt: number;
  deliveries: number;
  cause?: string;
  id: string;
  topic: string;
  group: string;
  key?: string;
  headers?: Record<string, string>;
  published_at?: string;
}

/** Follow is a follow-up: a message, and its topic. */
export interface Follow {
  topic: string;
  message: Message;
}

/** Delivery is one message, received. It is ours until it is settled, or its lease is over. */
export class Delivery<T = unknown> {
  readonly id: string;
  readonly topic: string;
  readonly group: string;
  readonly key: string;
  /** The body: what JSON says if it is JSON, otherwise bytes. */
  readonly value: T;
  readonly contentType: string;
  readonly headers: Record<string, string>;
  /** The first attempt is 1. */
  readonly attempt: number;
  /** How often it was handed out and not settled, this time included. */
  readonly deliveries: number;
  readonly cause: string;
  readonly publishedAt: Date | undefined;
  /** The handle that settles and extends it. */
  readonly lease: string;
  /** For how many milliseconds it was ours when it was handed out. */
  readonly leaseFor: number;
  /** Follow-ups that are published with the acknowledgement. */
  readonly emitted: Follow[] = [];
  readonly #controller = new AbortController();

  constructor(json: DeliveryJSON) {
    this.id = json.id;
    this.topic = json.topic;
    this.group = json.group;
    this.key = json.key ?? "";
    this.value = readBody(json) as T;
    this.contentType = json.content_type ?? "";
    this.headers = json.headers ?? {};
    this.attempt = json.attempt;
    this.deliveries = json.deliveries;
    this.cause = json.cause ?? "";
    this.publishedAt = json.published_at ? new Date(json.published_at) : undefined;
    this.lease = json.lease;
    this.leaseFor = toMilliseconds(json.lease_for);
  }

  /**
   * signal is aborted when the lease is lost, or the worker cannot wait any longer: what is done from now on does not count, and the
   * message comes again. Give it to what the handler waits for.
   */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** emit publishes a follow-up no later than this message is acknowledged, and not at all if its handler fails. */
  emit(topic: string, value: unknown, options?: Options): void {
    this.emitted.push({ topic, message: newMessage(value, options) });
  }

  /** cancel tells the handler that its work does not count any more. */
  cancel(why: string): void {
    this.#controller.abort(new Error(why));
  }
}

/** Settlement is how a delivery ends. The outcome defaults to ack. */
export interface Settlement {
  delivery: Delivery;
  outcome?: "ack" | "retry" | "dead" | "release" | "drop";
  after?: Duration | undefined;
  reason?: string;
  error?: string;
  emit?: Follow[];
  /** What the handler returned, for who waits for it. Goes with an ack. */
  result?: Message | undefined;
}

/** settlementJSON is the settlement as the server reads it. */
export function settlementJSON(settlement: Settlement): Record<string, unknown> {
  return {
    lease: settlement.delivery.lease,
    outcome: settlement.outcome ?? "ack",
    after: settlement.after === undefined ? undefined : toText(settlement.after),
    reason: settlement.reason,
    error: settlement.error,
    emit: settlement.emit?.map(({ topic, message }) => messageJSON(message, topic)),
    result: settlement.result && writeBody(settlement.result.value, settlement.result.options.contentType),
  };
}
