import { useEffect, useRef } from "react";
import { Store } from "@/lib/store";

/** Key is what a key, or two after one another ("g t"), does. */
export interface Key {
  keys: string;
  label: string;
  run: () => void;
}

/** bound are the keys that work now, for the help. */
export const bound = new Store<readonly Key[]>([]);

const patience = 1500; // milliseconds for the second of two keys

/** useKeys binds keys for as long as a component is shown. What they do is what the component says last: it may show another message by then. */
export function useKeys(keys: Key[]): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  const names = keys.map((k) => k.keys + k.label).join("\n");
  useEffect(() => {
    const own = latest.current.map((key) => ({ ...key, run: () => latest.current.find((k) => k.keys === key.keys)?.run() }));
    bound.set([...bound.get(), ...own]);
    return () => bound.set(bound.get().filter((k) => !own.includes(k)));
  }, [names]);
}

/** listen handles the keys of the page. What is typed into a field or a dialog, or held with Ctrl, is not ours. */
export function listen(): void {
  let first = "";
  let at = 0;
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || typing(e.target)) return;
    const both = Date.now() - at < patience ? `${first} ${e.key}` : e.key;
    const found = find(both) ?? find(e.key);
    first = e.key;
    at = found ? 0 : Date.now();
    if (!found) return;
    e.preventDefault();
    found.run();
  });
}

function find(keys: string): Key | undefined {
  return bound.get().findLast((k) => k.keys === keys);
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest("[role=dialog]") !== null);
}
