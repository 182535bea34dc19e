import { useMemo, useRef } from "react";

/** Listed is a row of a list, with what tells it apart. */
export interface Listed<T> {
  id: string;
  row: T;
}

export type Value = string | number | undefined;

const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** compare orders what a column is sorted by. What is not there comes last. */
function compare(a: Value, b: Value): number {
  if (a === b) return 0;
  if (a === undefined || b === undefined) return a === undefined ? 1 : -1;
  if (typeof a === "string" && typeof b === "string") return words.compare(a, b);
  return a < b ? -1 : 1;
}

/** sorted orders rows by what a column says of them. */
export function sorted<T>(rows: readonly Listed<T>[], of: (row: T) => Value, falling: boolean): Listed<T>[] {
  const order = (a: Listed<T>, b: Listed<T>) => compare(of(a.row), of(b.row));
  return [...rows].sort(falling ? (a, b) => order(b, a) : order);
}

/** places gives each row that is drawn a place in the document: a row that comes takes that of one which left. */
export function places(before: ReadonlyMap<string, number>, ids: readonly string[]): Map<string, number> {
  const now = new Map<string, number>();
  for (const id of ids) {
    const place = before.get(id);
    if (place !== undefined) now.set(id, place);
  }
  const taken = new Set(now.values());
  let next = 0;
  for (const id of ids) {
    if (now.has(id)) continue;
    while (taken.has(next)) next++;
    now.set(id, next++);
  }
  return now;
}

/**
 * usePlaces keeps the elements of rows that are scrolled away for those that come. Making elements anew for each row that passes is what
 * the browser had to stop for: to free them, for longer than a frame.
 */
export function usePlaces(ids: readonly string[]): ReadonlyMap<string, number> {
  const before = useRef<ReadonlyMap<string, number>>(new Map());
  return useMemo(() => (before.current = places(before.current, ids)), [ids]);
}
