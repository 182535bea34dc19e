/** Which delivery starts next: order by key, within the bound of handlers. */

import type { Held } from "./leases.ts";

/**
 * Lanes are deliveries that wait for a handler. The broker hands out one message of a key at a time. Only after a lost lease can the
 * next delivery of a key be here while the handler of the one before still runs: it waits for its end.
 */
export class Lanes {
  #ready: Held[] = [];
  readonly #behind = new Map<string, Held[]>(); // by keys that run

  /** size is how many wait. */
  get size(): number {
    let size = this.#ready.length;
    for (const waiting of this.#behind.values()) size += waiting.length;
    return size;
  }

  /** add: a delivery has come. */
  add(held: Held): void {
    this.#ready.push(held);
  }

  /** next is the next delivery that may start, if there is one. Its key runs until done says otherwise. */
  next(): Held | undefined {
    for (let held = this.#ready.shift(); held; held = this.#ready.shift()) {
      if (held.lost) continue;
      const key = held.delivery.key;
      const behind = this.#behind.get(key);
      if (behind) {
        behind.push(held);
        continue;
      }
      if (key) this.#behind.set(key, []);
      return held;
    }
    return undefined;
  }

  /** done: the handler of a delivery that next returned has ended. */
  done(held: Held): void {
    const waiting = this.#behind.get(held.delivery.key) ?? [];
    this.#behind.delete(held.delivery.key);
    this.#ready.unshift(...waiting);
  }

  /** clear takes out everything that has not started. */
  clear(): Held[] {
    const out = this.#ready.concat(...this.#behind.values());
    this.#ready = [];
    for (const waiting of this.#behind.values()) waiting.length = 0;
    return out.filter((held) => !held.lost);
  }
}
