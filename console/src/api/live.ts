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
  /** name of the events it listens to. */
  name: string;
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
  private heard = new Set<string>();
  private last = new Map<string, { whole: string; ageless: string }>();
  private closing: ReturnType<typeof setTimeout> | undefined;
  private quiet: ReturnType<typeof setTimeout> | undefined;

  constructor(private url: string) {}

  listen(listener: Listener): () => void {
    clearTimeout(this.closing);
    this.listeners.add(listener);
    this.hear(this.source ?? this.open(), listener.name);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.closing = setTimeout(() => this.close(), linger);
    };
  }

  private open(): EventSource {
    const source = new EventSource(this.url);
    this.source = source;
    this.heard.clear();
    this.last.clear();
    source.addEventListener("open", () => {
      this.refused.set(false);
      for (const listener of this.listeners) listener.opened();
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) this.refused.set(true);
      void check();
    });
    return source;
  }

  private hear(source: EventSource, name: string): void {
    if (this.heard.has(name)) return;
    this.heard.add(name);
    source.addEventListener(name, (e: MessageEvent<string>) => this.take(name, e.data));
  }

  private take(name: string, text: string): void {
    const data: unknown = JSON.parse(text);
    const change = this.compare(name, text);
    for (const listener of this.listeners) if (listener.name === name) listener.event(data, change);
    clearTimeout(this.quiet);
    if (name === "figures") this.quiet = setTimeout(() => void check(), silence);
  }

  private compare(name: string, text: string): Change {
    const last = this.last.get(name);
    const whole = text.replace(/"at":"[^"]*"/, ""); // when they were looked at is no change of figures
    const ageless = whole.replace(/"oldest":"[^"]*"/g, "");
    this.last.set(name, { whole, ageless });
    if (last === undefined || last.whole === whole) return "none";
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

function streamOf(url: string): Stream {
  const stream = streams.get(url) ?? new Stream(url);
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
  const stream = streamOf(address(path, input as object));
  const callback = useRef({ onEvent, opened });
  useEffect(() => {
    callback.current = { onEvent, opened };
  });
  useEffect(() => {
    if (!listening) return;
    return stream.listen({
      name,
      opened: () => callback.current.opened?.(),
      event: (data, change) => callback.current.onEvent(data as T, change),
    });
  }, [stream, name, listening]);
  return !useStore(stream.refused);
}
