/** Workers: they receive messages, call a handler for each, and settle what it decided. */

import console from "node:console";
import process from "node:process";
import { Backoff, sleep } from "./backoff.ts";
import type { Client } from "./client.ts";
import type { Delivery, Settlement } from "./delivery.ts";
import { type Duration, toMilliseconds } from "./durations.ts";
import { FerryError, Invalid } from "./errors.ts";
import { Lanes } from "./lanes.ts";
import { type Held, Leases } from "./leases.ts";
import { newMessage } from "./message.ts";
import { Dead, Drop, Outcome, Release, Retry } from "./outcomes.ts";
import { Settler } from "./settler.ts";

/** Logger gets what cannot be thrown at anybody. */
export interface Logger {
  warn(message: string): void;
  error(message: string): void;
}

/** Handler handles one message. A return acknowledges it; Retry, Dead, Release and Drop say something else; all else is a failed attempt. */
export type Handler<T> = (delivery: Delivery<T>) => unknown;

/** WorkerOptions of a worker. All of them may be left out. */
export interface WorkerOptions {
  /** Defaults to "default". */
  group?: string;
  /** The most handlers at once. Defaults to 10. */
  concurrency?: number;
  /** The most messages that wait for a handler. Defaults to as many as handlers. */
  prefetch?: number;
  /** How long a message stays with a worker that is not heard of. Defaults to what the broker recommends. */
  lease?: Duration;
  /** How long one request waits for messages, and so the least time that a stop may take. Defaults to 2 s. */
  poll?: Duration;
  /** How long handlers may go on after a stop. Defaults to 30 s. */
  drain?: Duration;
  /**
   * Keep what the handler returns for an hour, for who calls wait: a value as in publish, or a Message with its content type;
   * undefined is kept as null. Defaults to false.
   */
  results?: boolean;
  /** Defaults to console. */
  logger?: Logger;
}

const signals = ["SIGTERM", "SIGINT"] as const;
// How long handlers that were cancelled, and the last settlements, may take before the worker gives up on them.
const grace = 5000;
// The most messages of one receive, and the most that are settled and of which the server has not said so.
const most = 1000;

/**
 * Worker handles the messages of one group of a topic. Messages of one key are handled one after the other. Leases are renewed as long
 * as a handler runs; when one is lost all the same the signal of the delivery is aborted, and it is never settled.
 */
export class Worker<T = unknown> {
  readonly #concurrency: number;
  readonly #limit: number;
  readonly #log: Logger;
  readonly #stop = new AbortController();
  readonly #lanes = new Lanes();
  readonly #leases: Leases;
  readonly #settler: Settler;
  readonly #running = new Map<Held, Promise<void>>();
  #changed: () => void = () => {};

  constructor(
    readonly client: Client,
    readonly topic: string,
    readonly handler: Handler<T>,
    readonly options: WorkerOptions = {},
  ) {
    this.#concurrency = options.concurrency ?? 10;
    const prefetch = options.prefetch ?? this.#concurrency;
    if (!(this.#concurrency >= 1) || !(prefetch >= 0)) {
      throw new Invalid("concurrency is below 1, or prefetch below 0", { code: "invalid", hint: "leave them out for the defaults" });
    }
    this.#limit = this.#concurrency + prefetch;
    this.#log = options.logger ?? console;
    this.#leases = new Leases(client, this.#log, () => this.#changed());
    this.#settler = new Settler(client, this.#leases, this.#log);
  }

  /** stop receives nothing more; run resolves when the handlers have ended. */
  stop(): void {
    this.#stop.abort();
    this.#changed();
  }

  /** run works until stop, or until SIGTERM or SIGINT unless signals are left to others. It runs once. Rejects with what waiting cannot help. */
  async run(options: { signals?: boolean } = {}): Promise<void> {
    const stop = () => this.stop();
    if (options.signals ?? true) for (const name of signals) process.on(name, stop);
    try {
      await this.#fetch();
    } finally {
      this.stop();
      await this.#finish();
      for (const name of signals) process.off(name, stop);
      this.#settler.end();
      this.#leases.end();
    }
  }

  async #fetch(): Promise<void> {
    const backoff = new Backoff();
    while (await this.#hasRoom()) {
      try {
        for (const delivery of await this.#receive()) this.#lanes.add(this.#leases.add(delivery as Delivery));
        backoff.reset();
      } catch (error) {
        if (!(error instanceof FerryError) || !error.transient) throw error;
        this.#log.warn(`ferry: nothing is received, which is tried again: ${error}`);
        await sleep(backoff.pause(), this.#stop.signal);
      }
      if (!this.#stop.signal.aborted) this.#start();
    }
  }

  async #receive(): Promise<Delivery<T>[]> {
    const { group = "default", poll = 2000, lease } = this.options;
    return this.client.receive<T>(this.topic, { group, wait: poll, lease, max: Math.min(most, this.#limit - this.#inHand()) });
  }

  /** #hasRoom waits until no more is here than runs, and reports whether to go on. */
  async #hasRoom(): Promise<boolean> {
    while (!this.#stop.signal.aborted && this.#isFull()) await this.#change();
    return !this.#stop.signal.aborted;
  }

  /** #inHand is how many wait for a handler, or run. */
  #inHand(): number {
    return this.#lanes.size + this.#running.size;
  }

  /** #isFull: to ask for more would be too early. There is enough to do, or too much that the server has not taken back yet. */
  #isFull(): boolean {
    const inHand = this.#inHand();
    return inHand > this.#concurrency || inHand >= this.#limit || this.#leases.size - inHand >= most;
  }

  /** #change resolves when less is here or held, or when somebody says that nothing more is waited for. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = resolve;
    });
  }

  /** #start starts handlers, as many as may run. */
  #start(): void {
    while (this.#running.size < this.#concurrency) {
      const held = this.#lanes.next();
      if (!held) return;
      this.#running.set(held, this.#handle(held));
    }
  }

  async #handle(held: Held): Promise<void> {
    await Promise.resolve(); // it is among those that run before it can end
    const settlement = await this.#decide(held.delivery);
    this.#running.delete(held);
    this.#lanes.done(held);
    this.#changed();
    if (!held.lost) this.#settler.add(held, settlement);
    if (!this.#stop.signal.aborted) this.#start();
  }

  /** #decide calls the handler, and says what becomes of its message. */
  async #decide(delivery: Delivery): Promise<Settlement> {
    try {
      const value = await this.handler(delivery as Delivery<T>);
      const result = this.options.results ? newMessage(value ?? null) : undefined;
      return { delivery, outcome: "ack", emit: delivery.emitted, result };
    } catch (error) {
      if (error instanceof Outcome) return settlementOf(delivery, error);
      if (delivery.signal.aborted) return { delivery, outcome: "release" };
      this.#log.warn(`ferry: attempt ${delivery.attempt} of ${delivery.topic}/${delivery.id} failed: ${error}`);
      return { delivery, outcome: "retry", error: String(error) };
    }
  }

  /** #finish gives back what has not started, waits for what runs, and settles all of it. */
  async #finish(): Promise<void> {
    this.#giveBack();
    await within(toMilliseconds(this.options.drain ?? 30_000), this.#running.values());
    for (const held of this.#running.keys()) held.delivery.cancel("the worker stops");
    await within(grace, this.#running.values());
    for (const held of this.#running.keys()) {
      // It cannot be ended: its lease runs out, and nobody overlaps with it before.
      this.#log.error(`ferry: the handler of ${held.delivery.topic}/${held.delivery.id} does not end; its message comes again`);
      held.lost = true;
      this.#leases.drop(held);
    }
    this.#giveBack(); // what waited behind a key
    await this.#settled();
  }

  /** #settled waits until the server has answered for everything, and not for ever. */
  async #settled(): Promise<void> {
    let patient = true;
    const timer = setTimeout(() => {
      patient = false;
      this.#changed();
    }, grace);
    while (this.#leases.size > 0 && patient) await this.#change();
    clearTimeout(timer);
  }

  #giveBack(): void {
    for (const held of this.#lanes.clear()) this.#settler.add(held, { delivery: held.delivery, outcome: "release" });
  }
}

function settlementOf(delivery: Delivery, outcome: Outcome): Settlement {
  const error = outcome.message;
  if (outcome instanceof Dead) return { delivery, outcome: "dead", reason: outcome.reason, error };
  if (outcome instanceof Release) return { delivery, outcome: "release", after: outcome.after };
  if (outcome instanceof Drop) return { delivery, outcome: "drop" };
  return { delivery, outcome: "retry", after: outcome instanceof Retry ? outcome.after : undefined, error };
}

/** within waits for all of the promises, and no longer than this time. */
async function within(milliseconds: number, promises: Iterable<Promise<void>>): Promise<void> {
  const enough = new AbortController();
  await Promise.race([Promise.all(promises), sleep(milliseconds, enough.signal)]);
  enough.abort(); // ends the timer
}
