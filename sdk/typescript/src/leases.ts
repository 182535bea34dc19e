/** What a worker holds, and the renewal of its leases. */

import type { Client } from "./client.ts";
import type { Delivery } from "./delivery.ts";
import { LeaseLost } from "./errors.ts";
import type { Logger } from "./worker.ts";

// The most leases of one request.
const most = 1000;

/** Held is a delivery that the worker holds, from its receipt until it is settled or lost. Times are milliseconds. */
export class Held {
  lost = false;
  /** Its settlement is on the way: whether the lease was lost is known from the answer to that, and from nothing that crosses it. */
  settling = false;
  readonly lease: number;
  /** By the clock of this process, when the lease is over if nothing renews it. */
  until: number;

  constructor(readonly delivery: Delivery) {
    this.lease = Math.max(100, delivery.leaseFor);
    this.until = performance.now() + this.lease;
  }

  /** isDue: a third of the lease has passed. */
  isDue(now: number): boolean {
    return this.until - now <= (this.lease * 2) / 3;
  }
}

/** Leases are everything the worker holds. Renewed at a third of the lease; lost when the server says so, or when its time is over. */
export class Leases {
  readonly #held = new Set<Held>();
  #tick = 1000;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #renewing = false;
  #ended = false;

  constructor(
    readonly client: Client,
    readonly log: Logger,
    readonly onGone: () => void,
  ) {}

  get size(): number {
    return this.#held.size;
  }

  /** add holds a delivery. */
  add(delivery: Delivery): Held {
    const held = new Held(delivery);
    this.#tick = Math.min(this.#tick, held.lease / 10);
    this.#held.add(held);
    this.#schedule();
    return held;
  }

  /** drop holds it no longer: it is settled, lost, or given up. */
  drop(held: Held): void {
    this.#held.delete(held);
    this.onGone();
  }

  /** lose: the message is somebody else's now, or will be. */
  lose(held: Held, why: string): void {
    if (held.lost || !this.#held.has(held)) return;
    held.lost = true;
    this.log.warn(`ferry: the lease of ${held.delivery.topic}/${held.delivery.id} is lost: ${why}; it comes again`);
    this.drop(held);
    held.delivery.cancel("the lease is lost");
  }

  /** end renews nothing more. */
  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#ended || this.#held.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#expire();
      void this.#renew();
      this.#schedule();
    }, this.#tick);
  }

  #expire(): void {
    const now = performance.now();
    for (const held of this.#held) if (held.until <= now) this.lose(held, "it could not be renewed in time");
  }

  /** #renew renews what is due. One that hangs does not hide that leases end meanwhile. */
  async #renew(): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    const now = performance.now();
    const due = [...this.#held].filter((held) => held.isDue(now));
    for (let at = 0; at < due.length; at += most) await this.#renewSome(due.slice(at, at + most));
    this.#renewing = false;
  }

  async #renewSome(some: Held[]): Promise<void> {
    const start = performance.now();
    try {
      const errors = await this.client.extend(
        some.map((held) => held.delivery),
        Math.max(1000, (some[0]?.lease ?? 0) / 3),
      );
      some.forEach((held, i) => {
        const error = errors[i];
        if (!error) held.until = start + held.lease;
        else if (error instanceof LeaseLost && !held.settling) this.lose(held, error.message);
      });
    } catch (error) {
      this.log.warn(`ferry: ${some.length} leases were not renewed, which is tried again: ${error}`);
    }
  }
}
