/**
 * Ferry, a message queue, from TypeScript: publish, work, results and dead letters over HTTP, in Node.js and Deno.
 *
 * @module
 */

export { Client, type ClientOptions, type GroupOptions, type ReceiveOptions } from "./client.ts";
export type { DeadLetter, Replay, Selection } from "./deadletters.ts";
export { Delivery, type Settlement } from "./delivery.ts";
export type { Duration } from "./durations.ts";
export {
  BatchError,
  Conflict,
  FailedError,
  FerryError,
  Full,
  Invalid,
  LeaseElsewhere,
  LeaseLost,
  NotApplied,
  NotFound,
  Refused,
  TimeoutError,
  TooLarge,
  Unknown,
  Unsupported,
} from "./errors.ts";
export { Message, type Options, type Receipt, type RetryPolicy } from "./message.ts";
export { Dead, Drop, Outcome, Release, Retry } from "./outcomes.ts";
export type { Result } from "./results.ts";
export { type Handler, type Logger, Worker, type WorkerOptions } from "./worker.ts";
