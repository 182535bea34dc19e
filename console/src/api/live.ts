import { useEffect, useRef } from "react";
import { Store, useStore } from "@/lib/store";
import { address, loggedOut, type Input, type PathsOf } from "./client";
import { connection } from "./connection";

/** paused stops everything that updates by itself, so that nothing moves under the eyes. */
export const paused = new Store(false);

const hidden = new Store(document.hidden);
document.addEventListener("visibilitychange", () => hidden.set(document.hidden));

/** useStream calls back with each event of a stream. A page that is paused, hidden or cut off does not listen. */
export function useStream<P extends PathsOf<"get">, T>(
  path: P,
  input: Input<P, "get">,
  event: string,
  onEvent: (data: T) => void,
  enabled = true,
): void {
  const stopped = [useStore(paused), useStore(hidden), useStore(loggedOut), useStore(connection) !== undefined];
  const listening = enabled && !stopped.includes(true);
  const url = address(path, input as object);
  const callback = useRef(onEvent);
  useEffect(() => {
    callback.current = onEvent;
  });
  useEffect(() => {
    if (!listening) return;
    const source = new EventSource(url);
    source.addEventListener(event, (e: MessageEvent<string>) => callback.current(JSON.parse(e.data) as T));
    return () => source.close();
  }, [url, event, listening]);
}
