/**
 * Ferry, a message queue, from TypeScript: publish, work, results and dead letters over HTTP, in Node.js and Deno.
 *
 * @module
 */

export { Client, type ClientOptions, type GroupOptions, type ReceiveOptions } from "./client.js";
export type { DeadLetter, Replay, Selection } from "./deadletters.js";
export { Delivery, type Settlement } from "./delivery.js";
export type { Duration } from "./durations.js";
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
} from "./errors.js";
export { Message, type Options, type Receipt, type RetryPolicy } from "./message.js";
export { Dead, Drop, Outcome, Release, Retry } from "./outcomes.js";
export type { Result } from "./results.js";
export { type Handler, type Logger, Worker, type WorkerOptions } from "./worker.js";
