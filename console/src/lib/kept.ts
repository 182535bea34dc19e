import { Store } from "./store";

/** kept is a store whose value survives a reload, in the browser. What is stored and no choice any more counts as none. */
export function kept<T extends string>(name: string, choices: readonly T[], standard: T): Store<T> {
  const key = `ferry.${name}`;
  const stored = read(key);
  const store = new Store<T>(choices.find((c) => c === stored) ?? standard);
  store.subscribe(() => write(key, store.get()));
  return store;
}

// A browser may forbid to keep anything; then a choice is good until the next reload.

function read(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    return;
  }
}
