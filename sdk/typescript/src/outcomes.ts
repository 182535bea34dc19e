/** How a handler ends other than by a return: it throws one of these. */

import type { Duration } from "./durations.ts";

/** Outcome says what becomes of the message. Anything else that is thrown is a failed attempt that is retried. */
export abstract class Outcome extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** Retry: the attempt failed, and another is made after this time, or when message and server say so. After the last one it is dead. */
export class Retry extends Outcome {
  constructor(
    readonly after?: Duration,
    error = "the handler asked for a retry",
  ) {
    super(error);
  }
}

/** Dead: the message becomes a dead letter at once. `reason` is a word to count by, `error` a text for people. */
export class Dead extends Outcome {
  constructor(
    readonly reason = "rejected",
    error = reason,
  ) {
    super(error);
  }
}

/** Release: the message goes back as if it had not been received: no attempt is counted. */
export class Release extends Outcome {
  constructor(readonly after?: Duration) {
    super("the handler released the message");
  }
}

/** Drop: the message is discarded: settled, and no dead letter. */
export class Drop extends Outcome {
  constructor() {
    super("the handler dropped the message");
  }
}
