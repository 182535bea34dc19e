/** Settlements on their way: in batches, repeated until the server has answered, never after a lost lease. */

import { Backoff, sleep } from "./backoff.ts";
import type { Client } from "./client.ts";
import type { Settlement } from "./delivery.ts";
import { type FerryError, Invalid, LeaseLost, TooLarge } from "./errors.ts";
import type { Held, Leases } from "./leases.ts";
import type { Logger } from "./worker.ts";

// The most settlements of one request.
const most = 1000;

interface Pending {
  held: Held;
  settlement: Settlement;
}

/** Settler sends what handlers decided. What gathers while a request is under way is the next one. */
export class Settler {
  #pending: Pending[] = [];
  #sending = false;
  readonly #ended = new AbortController();
  readonly #backoff = new Backoff();

  constructor(
    readonly client: Client,
    readonly leases: Leases,
    readonly log: Logger,
  ) {}

  /** add settles a delivery. */
  add(held: Held, settlement: Settlement): void {
    this.#pending.push({ held, settlement });
    void this.#send();
  }

  /** end settles nothing more. */
  end(): void {
    this.#ended.abort();
  }

  async #send(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    await Promise.resolve(); // what ends in the same moment goes together
    while (this.#pending.length > 0 && !this.#ended.signal.aborted) {
      const batch = this.#take();
      if (batch.length > 0 && !(await this.#settle(batch))) await sleep(this.#backoff.pause(), this.#ended.signal);
    }
    this.#sending = false;
  }

  /** #take is the next batch, without what was lost: its message is somebody else's. */
  #take(): Pending[] {
    return this.#pending.splice(0, most).filter(({ held }) => !held.lost);
  }

  /** #settle settles a batch. Reports whether the server answered for all of it. */
  async #settle(batch: Pending[]): Promise<boolean> {
    for (const { held } of batch) held.settling = true;
    let errors: (FerryError | undefined)[];
    try {
      errors = await this.client.settle(batch.map(({ settlement }) => settlement));
    } catch (error) {
      if (error instanceof Invalid || error instanceof TooLarge || error instanceof TypeError) return this.#settleApart(batch, error);
      this.log.warn(`ferry: ${batch.length} settlements had no answer, and are repeated: ${error}`);
      this.#repeat(batch);
      return false;
    }
    const again = batch.filter((pending, i) => !this.#settled(pending, errors[i]));
    this.#repeat(again);
    if (again.length === 0) this.#backoff.reset();
    return again.length === 0;
  }

  #repeat(batch: Pending[]): void {
    for (const { held } of batch) held.settling = false;
    this.#pending.unshift(...batch);
  }

  /** #settleApart: one settlement spoils the request, by the size of what it emits for example. It finds out which. */
  async #settleApart(batch: Pending[], error: FerryError | TypeError): Promise<boolean> {
    const [only] = batch;
    if (batch.length === 1 && only) return this.#settled(only, error);
    let answered = true;
    for (const pending of batch) answered = (await this.#settle([pending])) && answered;
    return answered;
  }

  /** #settled takes the answer about one settlement. Reports whether it is the last one. */
  #settled({ held, settlement }: Pending, error: FerryError | TypeError | undefined): boolean {
    if (!error) {
      this.leases.drop(held);
    } else if (error instanceof LeaseLost) {
      this.leases.lose(held, error.message);
    } else if ("transient" in error && error.transient) {
      return false;
    } else if (settlement.emit?.length || settlement.result) {
      this.log.error(`ferry: ${held.delivery.id} emits or returns what is refused, and is retried: ${error}`);
      const text = `what it emits or returns is refused: ${error.message}`;
      this.#pending.push({ held, settlement: { delivery: held.delivery, outcome: "retry", error: text } });
    } else {
      this.log.error(`ferry: ${held.delivery.id} cannot be settled, and comes again: ${error}`);
      this.leases.drop(held);
    }
    return true;
  }
}
