import { useMemo, useState, type FocusEvent, type PointerEvent } from "react";

interface Named {
  id: string;
}

/** Steady is a list as it is shown, and what has become of it since somebody points at it. */
export interface Steady<R> {
  rows: R[];
  gone: ReadonlySet<string>;
  fresh: number;
}

/** steady keeps rows where they were: their values are new, those that are gone stay, and those that came wait. */
export function steady<R extends Named>(before: readonly R[], rows: readonly R[]): Steady<R> {
  const now = new Map(rows.map((row) => [row.id, row]));
  const gone = new Set(before.filter((row) => !now.has(row.id)).map((row) => row.id));
  return { rows: before.map((row) => now.get(row.id) ?? row), gone, fresh: rows.length - before.length + gone.size };
}

const none: ReadonlySet<string> = new Set();

/**
 * useSteady keeps rows from moving under a pointer, or under the keyboard. Whoever leaves them, acts, or looks at something else by another
 * filter, sort or page sees them as they are.
 */
export function useSteady<R extends Named>(rows: R[]) {
  const [held, setHeld] = useState<{ rows: R[]; place: string }>();
  const hold = () => {
    if (held?.place !== location.href) setHeld({ rows, place: location.href });
  };
  const release = () => setHeld(undefined);
  const before = held?.place === location.href ? held.rows : undefined;
  const shown = useMemo<Steady<R>>(() => (before ? steady(before, rows) : { rows, gone: none, fresh: 0 }), [before, rows]);
  const events = {
    // What moves below a pointer that stands still is told as a move of it, by no distance.
    onPointerMove: (e: PointerEvent) => e.pointerType === "mouse" && (e.movementX !== 0 || e.movementY !== 0) && hold(),
    onPointerLeave: release,
    onFocus: (e: FocusEvent) => e.target instanceof HTMLTableRowElement && hold(),
    onBlur: release,
    onClick: release,
  };
  return { ...shown, events };
}
