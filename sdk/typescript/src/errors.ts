/** What can go wrong. Every error has a stable code, and a hint what to do next. */

import type { Receipt } from "./message.ts";
import type { Result } from "./results.ts";

/** Problem is an error as the server writes it (RFC 9457). */
export interface Problem {
  code?: string;
  detail?: string;
  title?: string;
  hint?: string;
  status?: number;
  request_id?: string;
}

/**
 * FerryError is what the server refused, or what became of a request that had no answer. `code` never changes its meaning, `hint` is
 * for people, and the server's log knows `requestId`.
 */
export class FerryError extends Error {
  readonly code: string;
  readonly hint: string;
  readonly status: number;
  readonly requestId: string;

  constructor(detail: string, problem: Problem = {}, options?: ErrorOptions) {
    const code = problem.code ?? "internal";
    super(`${code}: ${detail}${problem.hint ? ` (${problem.hint})` : ""}`, options);
    this.name = new.target.name;
    this.code = code;
    this.hint = problem.hint ?? "";
    this.status = problem.status ?? 0;
    this.requestId = problem.request_id ?? "";
  }

  /** Whether the same request may succeed later. */
  get transient(): boolean {
    return false;
  }
}

/** Invalid: nothing was done, and so it will be the next time. */
export class Invalid extends FerryError {}
/** Refused: the token is wrong, or has not the scope on the topic. */
export class Refused extends FerryError {}
/** NotFound: there is no such thing. */
export class NotFound extends FerryError {}
/** Conflict: what exists differs. */
export class Conflict extends FerryError {}
/** LeaseLost: the delivery is not held any more; the message comes again. */
export class LeaseLost extends FerryError {}
/** TooLarge: the message or the request exceeds a limit. */
export class TooLarge extends FerryError {}
/** Unsupported: this broker cannot do it. */
export class Unsupported extends FerryError {}

/** Transient errors are those after which the same request may succeed. */
class Transient extends FerryError {
  override get transient(): boolean {
    return true;
  }
}

/** LeaseElsewhere: another gateway holds the lease. The next try may reach that one. */
export class LeaseElsewhere extends Transient {}
/** Full: a bound was reached, nothing was stored; later there may be room. */
export class Full extends Transient {}
/** NotApplied: the server was not reached, or changed nothing. */
export class NotApplied extends Transient {}
/** Unknown: the answer was lost, and it may have been done, or not. Repeating it under the same id is safe. */
export class Unknown extends Transient {}

/** FailedError: a message for whose result somebody waits became a dead letter, or was cancelled. */
export class FailedError extends FerryError {
  constructor(readonly result: Result) {
    super(`the message is ${result.state}: ${result.error}`, { code: "failed", hint: "see its dead letter" });
  }
}

/** TimeoutError: what somebody waits for takes longer than they wait. */
export class TimeoutError extends FerryError {
  constructor(what: string) {
    super(what, { code: "timeout", hint: "wait again, or longer" });
  }
}

/** BatchError: some messages of a batch were not stored. `receipts` has one answer for each message, in order. */
export class BatchError extends FerryError {
  constructor(readonly receipts: Receipt[]) {
    const failed = receipts.filter((receipt) => receipt.error);
    const detail = `${failed.length} of ${receipts.length} messages were not stored, the first because: ${failed[0]?.error?.message}`;
    super(detail, { code: "batch", hint: "look at the error of each receipt" });
  }
}

const byCode: Record<string, typeof FerryError> = {
  invalid: Invalid,
  invalid_request: Invalid,
  refused: Refused,
  forbidden: Refused,
  unauthenticated: Refused,
  not_found: NotFound,
  conflict: Conflict,
  lease_lost: LeaseLost,
  lease_elsewhere: LeaseElsewhere,
  too_large: TooLarge,
  full: Full,
  too_many_requests: Full,
  unsupported: Unsupported,
  not_applied: NotApplied,
  unavailable: NotApplied,
  unknown: Unknown,
  internal: Unknown,
};

/** fromProblem is the error of a problem that the server wrote. */
export function fromProblem(problem: Problem): FerryError {
  const kind = byCode[problem.code ?? "internal"] ?? FerryError;
  return new kind(problem.detail ?? problem.title ?? "the server gave no reason", problem);
}

/** fromAnswer is the error of an answer. One that is no problem was made by a proxy on the way. */
export function fromAnswer(status: number, body: string): FerryError {
  const problem = parse(body);
  if (problem?.code) return fromProblem({ status, ...problem });
  const kind = [408, 500, 502, 503, 504].includes(status) ? Unknown : FerryError;
  const code = kind === Unknown ? "unknown" : "internal";
  return new kind(`the answer has status ${status} and is not Ferry's`, { code, status, hint: "is the URL that of a Ferry server?" });
}

function parse(body: string): Problem | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? (value as Problem) : undefined;
  } catch {
    return undefined;
  }
}
