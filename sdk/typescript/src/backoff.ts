/** How long to wait before the next try. */

/** Backoff makes pauses that grow, each with full jitter, so that many clients do not come back at once. In milliseconds. */
export class Backoff {
  #next: number;

  constructor(
    readonly first = 100,
    readonly most = 2000,
  ) {
    this.#next = first;
  }

  /** reset: it went well, so begin again with the first pause. */
  reset(): void {
    this.#next = this.first;
  }

  /** pause is the next pause. */
  pause(): number {
    const pause = this.#next;
    this.#next = Math.min(this.most, 2 * pause);
    return Math.random() * pause;
  }
}

/** sleep waits, and no longer than until the signal. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", done);
  });
}
