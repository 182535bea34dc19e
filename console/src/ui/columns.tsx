import type { ReactNode } from "react";
import type { Column } from "./Table";

interface NumberColumn<T> {
  id: string;
  header: string;
  of: (row: T) => number;
  write: (n: number) => string;
  /** bad makes what is not zero stand out. */
  bad?: boolean;
}

/** numberColumn stands to the right, is sorted by the number, and greys a zero, so that what is there stands out. */
export function numberColumn<T>({ id, header, of, write, bad = false }: NumberColumn<T>): Column<T> {
  const colour = (n: number) => (n === 0 ? "text-muted" : bad ? "font-medium text-bad" : "");
  return {
    id,
    header,
    of,
    cell: (row) => <span className={colour(of(row))}>{write(of(row))}</span>,
    right: true,
  };
}

/** Opener is the name of a row, which opens it. */
export function Opener({ onOpen, children }: { onOpen: () => void; children: ReactNode }) {
  return (
    <button type="button" className="py-0.5 font-medium text-accent hover:underline" onClick={onOpen}>
      {children}
    </button>
  );
}
