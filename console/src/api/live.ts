import { useEffect, useRef } from "react";
import { Store, useStore } from "@/lib/store";
import { address, loggedOut, type Input, type PathsOf } from "./client";
import { check, connection } from "./connection";

/** paused stops everything that updates by itself, so that nothing moves under the eyes. */
export const paused = new Store(false);

const hidden = new Store(document.hidden);
document.addEventListener("visibilitychange", () => hidden.set(document.hidden));

const linger = 1000; // milliseconds that a stream without listeners stays, for the screen that comes next
const silence = 30000; // milliseconds without an event after which it is asked whether the server is there

/** Change is what an event says beyond the one before it: that messages are older now is little. */
export type Change = "none" | "older" | "other";

interface Listener {
  /** opened: from now on nothing is missed, but perhaps something was before. */
  opened: () => void;
  event: (data: unknown, change: Change) => void;
}

/** Stream is a stream of events, and everybody on the page who listens to it: a browser has few connections to a server. */
class Stream {
  /** refused is set when the server does not give this stream. Then it has to be asked again and again instead. */
  readonly refused = new Store(false);
  private listeners = new Set<Listener>();
  private source: EventSource | undefined;
  private last = { whole: "", ageless: "" };
  private closing: ReturnType<typeof setTimeout> | undefined;
  private quiet: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private url: string,
    private name: string,
  ) {}

  listen(listener: Listener): () => void {
    clearTimeout(this.closing);
    this.listeners.add(listener);
    if (!this.source) this.open();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.closing = setTimeout(() => this.close(), linger);
    };
  }

  private open(): void {
    const source = new EventSource(this.url);
    this.source = source;
    this.last = { whole: "", ageless: "" };
    source.addEventListener("open", () => {
      this.refused.set(false);
      for (const listener of this.listeners) listener.opened();
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) this.refused.set(true);
      void check();
    });
    source.addEventListener(this.name, (e: MessageEvent<string>) => this.take(e.data));
  }

  private take(text: string): void {
    const data: unknown = JSON.parse(text);
    const change = this.compare(text);
    for (const listener of this.listeners) listener.event(data, change);
    clearTimeout(this.quiet);
    if (this.name === "figures") this.quiet = setTimeout(() => void check(), silence);
  }

  private compare(text: string): Change {
    const { last } = this;
    const whole = text.replace(/"at":"[^"]*"/, ""); // when they were looked at is no change of figures
    const ageless = whole.replace(/"oldest":"[^"]*"/g, "");
    this.last = { whole, ageless };
    if (last.whole === "" || last.whole === whole) return "none";
    return last.ageless === ageless ? "older" : "other";
  }

  private close(): void {
    clearTimeout(this.quiet);
    this.source?.close();
    this.source = undefined;
    this.refused.set(false);
  }
}

const streams = new Map<string, Stream>();

function streamOf(url: string, name: string): Stream {
  const stream = streams.get(url) ?? new Stream(url, name);
  streams.set(url, stream);
  return stream;
}

interface Options {
  enabled?: boolean | undefined;
  /** always: also while updates are paused, because somebody waits for it. */
  always?: boolean | undefined;
  /** opened is called when the stream begins, also after an interruption. */
  opened?: (() => void) | undefined;
}

/**
 * useStream calls back with each event of a stream, and what it says that is new. A page that is paused, hidden or cut off does not
 * listen. It returns whether the server gives the stream.
 */
export function useStream<P extends PathsOf<"get">, T>(
  path: P,
  input: Input<P, "get">,
  name: string,
  onEvent: (data: T, change: Change) => void,
  { enabled = true, always = false, opened }: Options = {},
): boolean {
  const stopped = [useStore(paused) && !always, useStore(hidden), useStore(loggedOut), useStore(connection) !== undefined];
  const listening = enabled && !stopped.includes(true);
  const stream = streamOf(address(path, input as object), name);
  const callback = useRef({ onEvent, opened });
  useEffect(() => {
    callback.current = { onEvent, opened };
  });
  useEffect(() => {
    if (!listening) return;
    return stream.listen({
      opened: () => callback.current.opened?.(),
      event: (data, change) => callback.current.onEvent(data as T, change),
    });
  }, [stream, listening]);
  return !useStore(stream.refused);
}
