/** The client. */

import { randomUUID } from "node:crypto";
import { Backoff, sleep } from "./backoff.ts";
import { type DeadLetter, type DeadLetterJSON, type Replay, type Selection, toDeadLetter, toReplay } from "./deadletters.ts";
import { Delivery, type DeliveryJSON, type Settlement, settlementJSON } from "./delivery.ts";
import { type Duration, toMilliseconds, toText } from "./durations.ts";
import { BatchError, FailedError, FerryError, fromAnswer, fromProblem, NotApplied, type Problem, TimeoutError, Unknown } from "./errors.ts";
import { failedReceipt, messageJSON, type Options, type Receipt, type ReceiptJSON, toMessage, toReceipt } from "./message.ts";
import { type Result, type ResultJSON, toResult } from "./results.ts";
import { findToken, findURL } from "./settings.ts";

/** ClientOptions say where the server is. All of them may be left out. */
export interface ClientOptions {
  /** Defaults to FERRY_BROKER; `ferry://` and `ferrys://` are taken too. */
  url?: string;
  /** Defaults to the content of `tokenFile`, or to FERRY_TOKEN. */
  token?: string;
  tokenFile?: string;
  /** For so long a publish is repeated while the server is away or full, under the same ids, so that it is stored once. Defaults to 30 s. */
  retryFor?: Duration;
  /** The most time of one request. Defaults to 30 s. */
  timeout?: Duration;
}

/** ReceiveOptions of a receive without a worker. */
export interface ReceiveOptions {
  /** Defaults to "default". */
  group?: string;
  /** The most messages. Defaults to 10. */
  max?: number;
  /** How long to wait for the first one. Defaults to 10 s; at most 20 s. */
  wait?: Duration;
  /** How long they are ours. Defaults to what the broker recommends. */
  lease?: Duration | undefined;
}

/** GroupOptions of what is asked of a message: its group, "default" if none is named. */
export interface GroupOptions {
  group?: string;
}

interface OutcomeJSON {
  ok?: boolean;
  error?: Problem;
}

interface OperationJSON {
  operation: string;
  state: string;
  problem?: string;
  done: number;
  skipped: number;
  why?: Record<string, number>;
}

// The most messages and characters of one request. The server takes ten times as many of the first.
const mostMessages = 1000;
const mostCharacters = 2 << 20;
// The longest that the server lets a request wait.
const longestWait = 20_000;

/** Client is a server. */
export class Client {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #retryFor: number;
  readonly #timeout: number;

  constructor(options: ClientOptions = {}) {
    this.#url = findURL(options.url);
    const token = findToken(options.token, options.tokenFile);
    this.#headers = { authorization: `Bearer ${token}`, "user-agent": "ferrymq-typescript" };
    this.#retryFor = toMilliseconds(options.retryFor ?? 30_000);
    this.#timeout = toMilliseconds(options.timeout ?? 30_000);
  }

  /** publish stores a value, or a Message. It is stored when this resolves. */
  async publish(topic: string, value: unknown, options?: Options): Promise<Receipt> {
    const [receipt] = await this.#publish(topic, [JSON.stringify(messageJSON(toMessage(value, options)))]);
    if (receipt?.error) throw receipt.error;
    return receipt as Receipt;
  }

  /** publishMany stores values or Messages in order, with one receipt each. BatchError, with all receipts, if any was not stored. */
  async publishMany(topic: string, messages: Iterable<unknown>): Promise<Receipt[]> {
    const lines = Array.from(messages, (value) => JSON.stringify(messageJSON(toMessage(value))));
    const receipts: Receipt[] = [];
    for (const batch of batches(lines)) {
      receipts.push(...(await this.#publish(topic, batch)));
      if (receipts.some((receipt) => receipt.error?.transient)) break; // what follows would overtake it
    }
    while (receipts.length < lines.length) receipts.push(failedReceipt(heldBack()));
    if (receipts.some((receipt) => receipt.error)) throw new BatchError(receipts);
    return receipts;
  }

  /** #publish makes one request, and repeats it while nothing of it was stored and that may change. */
  async #publish(topic: string, lines: string[]): Promise<Receipt[]> {
    const end = performance.now() + this.#retryFor;
    const backoff = new Backoff();
    for (;;) {
      const receipts = await this.#publishOnce(topic, lines);
      const pause = backoff.pause();
      if (!receipts.every((receipt) => receipt.error?.transient) || performance.now() + pause >= end) return receipts;
      await sleep(pause);
    }
  }

  async #publishOnce(topic: string, lines: string[]): Promise<Receipt[]> {
    try {
      const path = `/v1/topics/${encodeURIComponent(topic)}/messages`;
      const answer = await this.#ask<{ receipts: ReceiptJSON[] }>("POST", path, lines.join("\n"), { type: "application/x-ndjson" });
      return answer.receipts.map(toReceipt);
    } catch (error) {
      if (!(error instanceof FerryError)) throw error;
      return lines.map(() => failedReceipt(error));
    }
  }

  /** receive waits for messages. Each is ours for the time of its lease: extend it, and settle it. A Worker does all of that. */
  async receive<T = unknown>(topic: string, options: ReceiveOptions = {}): Promise<Delivery<T>[]> {
    const wait = options.wait ?? 10_000;
    const lease = options.lease === undefined ? undefined : toText(options.lease);
    const path = `/v1/topics/${encodeURIComponent(topic)}/groups/${encodeURIComponent(options.group ?? "default")}/receive`;
    const body = JSON.stringify({ max: options.max ?? 10, wait: toText(wait), lease });
    const timeout = this.#timeout + toMilliseconds(wait);
    const answer = await this.#ask<{ messages: DeliveryJSON[] }>("POST", path, body, { timeout });
    return answer.messages.map((json) => new Delivery<T>(json));
  }

  /** settle ends deliveries, with one error each, or undefined. */
  async settle(settlements: Settlement[]): Promise<(FerryError | undefined)[]> {
    const body = JSON.stringify({ settle: settlements.map(settlementJSON) });
    return errors((await this.#ask<{ settled: OutcomeJSON[] }>("POST", "/v1/settle", body)).settled);
  }

  /** extend keeps deliveries for one more lease from now, with one error each, or undefined. */
  async extend(deliveries: Delivery[], timeout?: Duration): Promise<(FerryError | undefined)[]> {
    const body = JSON.stringify({ leases: deliveries.map((delivery) => delivery.lease) });
    const bound = timeout === undefined ? {} : { timeout: toMilliseconds(timeout) };
    return errors((await this.#ask<{ extended: OutcomeJSON[] }>("POST", "/v1/extend", body, bound)).extended);
  }

  /** result tells how far a message is in a group now. */
  async result(topic: string, id: string, options: GroupOptions = {}): Promise<Result> {
    return this.#result(topic, id, options, 0);
  }

  /** wait resolves when a message is done. FailedError if it ended otherwise, and TimeoutError if that takes too long. */
  async wait(topic: string, id: string, options: GroupOptions & { timeout?: Duration } = {}): Promise<Result> {
    const end = options.timeout === undefined ? Infinity : performance.now() + toMilliseconds(options.timeout);
    const backoff = new Backoff();
    for (;;) {
      const left = Math.min(longestWait, end - performance.now());
      if (left <= 0) throw new TimeoutError(`message ${id} of ${topic} has not ended within ${options.timeout}`);
      try {
        const result = await this.#result(topic, id, options, left);
        if (result.ended && result.state !== "done") throw new FailedError(result);
        if (result.ended) return result;
      } catch (error) {
        if (!(error instanceof FerryError) || !error.transient) throw error;
        await sleep(Math.min(backoff.pause(), left));
      }
    }
  }

  async #result(topic: string, id: string, options: GroupOptions, wait: number): Promise<Result> {
    const path = ["", "v1", "results", topic, options.group ?? "default", id].map(encodeURIComponent).join("/");
    const query = wait > 0 ? `?wait=${toText(wait)}` : "";
    return toResult(await this.#ask<ResultJSON>("GET", path + query, undefined, { timeout: this.#timeout + wait }));
  }

  /** deadLetters are those of a topic, oldest first, that are selected. */
  async *deadLetters(topic: string, selection: Selection = {}): AsyncGenerator<DeadLetter> {
    let cursor: string | undefined;
    do {
      const query = new URLSearchParams({ topic, limit: "100" });
      for (const [name, value] of Object.entries({ ...selection, cursor })) if (value) query.set(name, value);
      const page = await this.#ask<{ messages: DeadLetterJSON[] | null; next?: string }>("GET", `/api/v1/dead?${query}`);
      yield* (page.messages ?? []).map(toDeadLetter);
      cursor = page.next;
    } while (cursor); // a page may be empty although there is more
  }

  /** replay brings one dead letter back to work in its group. */
  async replay(letter: DeadLetter): Promise<Replay> {
    const path = [letter.topic, letter.group, letter.id].map(encodeURIComponent).join("/");
    return toReplay(await this.#ask<Replay>("POST", `/api/v1/dead/${path}/replay`, "{}"));
  }

  /** replayMany brings back what is selected, and waits for the end of that operation. A dry run only counts. */
  async replayMany(topic: string, options: Selection & { dryRun?: boolean; timeout?: Duration } = {}): Promise<Replay> {
    const { group, where, dryRun: dry_run = false } = options;
    const end = options.timeout === undefined ? Infinity : performance.now() + toMilliseconds(options.timeout);
    const body = JSON.stringify({ id: randomUUID(), topic, group, where, dry_run });
    let operation = await this.#ask<OperationJSON>("POST", "/api/v1/dead/replay", body);
    for (let pause = 50; operation.state === "waiting" || operation.state === "running"; pause = Math.min(1000, 2 * pause)) {
      if (performance.now() > end) throw new TimeoutError(`the replay has not ended within ${options.timeout}`);
      await sleep(pause);
      operation = await this.#ask<OperationJSON>("GET", `/api/v1/operations/${encodeURIComponent(operation.operation)}`);
    }
    if (operation.state !== "done") {
      throw new FerryError(`the replay is ${operation.state}: ${operation.problem}`, { code: "failed", hint: "see `ferry operation ls`" });
    }
    return toReplay(operation);
  }

  /** #ask makes one request. NotApplied if the server was not reached, and Unknown if the answer was lost. */
  async #ask<T>(method: string, path: string, body?: string, options: { type?: string; timeout?: number } = {}): Promise<T> {
    const headers = { ...this.#headers, "content-type": options.type ?? "application/json" };
    const signal = AbortSignal.timeout(Math.ceil(options.timeout ?? this.#timeout));
    let status: number;
    let text: string;
    try {
      const answer = await fetch(this.#url + path, { method, headers, body: body ?? null, signal, redirect: "manual" });
      status = answer.status;
      text = await answer.text();
    } catch (error) {
      throw lost(error);
    }
    if (status >= 300) throw fromAnswer(status, text);
    try {
      return JSON.parse(text) as T;
    } catch {
      throw new FerryError("the answer is no JSON", { status, hint: "is the URL that of a Ferry server?" });
    }
  }
}

// What fetch says of a server that was not reached, so that nothing can have been changed: Node.js in a code, Deno in its text.
const notReached = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"];
const notConnected = "client error (Connect)";

/** lost is the error of a request without an answer. */
function lost(error: unknown): FerryError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = (cause as { code?: unknown }).code;
  if ((typeof code === "string" && notReached.includes(code)) || String(cause).includes(notConnected)) {
    return new NotApplied(`the server is not reached: ${code ?? cause}`, { code: "not_applied", hint: "does `ferry serve` run there?" }, { cause: error });
  }
  return new Unknown(`there was no answer: ${cause}`, { code: "unknown", hint: "is the server still there?" }, { cause: error });
}

function heldBack(): NotApplied {
  const hint = "publish it again, after those before it";
  return new NotApplied("a message before it was not stored", { code: "not_applied", hint });
}

function errors(outcomes: OutcomeJSON[]): (FerryError | undefined)[] {
  return outcomes.map((outcome) => (outcome.ok ? undefined : fromProblem(outcome.error ?? {})));
}

/** batches are the lines in requests that the server takes. */
function* batches(lines: string[]): Generator<string[]> {
  let batch: string[] = [];
  let size = 0;
  for (const line of lines) {
    if (batch.length > 0 && (batch.length === mostMessages || size + line.length > mostCharacters)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(line);
    size += line.length + 1;
  }
  if (batch.length > 0) yield batch;
}
