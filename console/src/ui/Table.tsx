import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useMemo, useRef, useState, type KeyboardEvent } from "react";
import { useText } from "@/i18n/text";
import { messages } from "./messages";
import { align, atTheEnd, Row, rowHeight, type Column } from "./Row";
import { sorted, usePlaces } from "./rows";
import { useSteady } from "./steady";

export type { Column } from "./Row";

const virtualFrom = 60;

interface TableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowID: (row: T) => string;
  /** sort is a column, with a minus for falling: "-ready". It belongs in the URL. */
  sort?: string | undefined;
  onSort?: (sort: string) => void;
  onOpen?: (row: T) => void;
  /** short leaves room for what stands below it. */
  short?: boolean;
}

/** Table draws only the rows that are seen, and keeps them where they are while somebody points at them. j and k move, Enter opens. */
export function Table<T>({ label, columns, rows, rowID, sort, onSort, onOpen, short = false }: TableProps<T>) {
  const t = useText(messages);
  const scroll = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(-1);
  const all = useMemo(() => rows.map((row) => ({ id: rowID(row), row })), [rows]); // eslint-disable-line react-hooks/exhaustive-deps
  const falling = sort?.startsWith("-") ?? false;
  const by = columns.find(({ id }) => id === (falling ? sort?.slice(1) : sort));
  const inOrder = useMemo(() => (by?.of ? sorted(all, by.of, falling) : all), [all, by?.of, falling]);
  const { rows: shown, gone, fresh, events } = useSteady(inOrder);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => rowHeight,
    overscan: 4,
  });
  const isVirtual = shown.length >= virtualFrom;
  const items = isVirtual ? virtual.getVirtualItems() : [];
  const first = items[0]?.index ?? 0;
  const end = isVirtual ? (items.at(-1)?.index ?? -1) + 1 : shown.length;
  const drawn = useMemo(() => shown.slice(first, end), [shown, first, end]);
  const places = usePlaces(useMemo(() => drawn.map(({ id }) => id), [drawn]));
  const before = first * rowHeight;
  const after = (shown.length - end) * rowHeight;

  const move = (to: number) => {
    const next = Math.max(0, Math.min(shown.length - 1, to));
    setAt(next);
    virtual.scrollToIndex(next);
    requestAnimationFrame(() => scroll.current?.querySelector<HTMLElement>(`tr[data-row="${next}"]`)?.focus());
  };
  const onKey = (e: KeyboardEvent) => {
    if (e.target instanceof HTMLInputElement) return;
    const current = shown[at]?.row;
    if (e.key === "j" || e.key === "ArrowDown") move(at + 1);
    else if (e.key === "k" || e.key === "ArrowUp") move(at - 1);
    else if (e.key === "Enter" && current && e.target instanceof HTMLTableRowElement) onOpen?.(current);
    else return;
    e.preventDefault();
  };
  const sortBy = (id: string) => onSort?.(sort === `-${id}` ? id : `-${id}`);

  return (
    <div
      ref={scroll}
      role="region"
      aria-label={label}
      tabIndex={0}
      data-table
      onKeyDown={onKey}
      className={`${short ? "max-h-[35vh]" : "max-h-[70vh]"} overflow-auto rounded border border-line bg-surface`}
    >
      <table className="w-full border-collapse" aria-rowcount={shown.length + 1}>
        <caption className="sr-only">
          {label}, {t("rows", { count: shown.length })}
        </caption>
        <thead className="sticky top-0 z-10 bg-raised">
          <tr aria-rowindex={1}>
            {columns.map((column) => {
              const order = column === by && column.of ? (falling ? "descending" : "ascending") : undefined;
              return (
                <th
                  key={column.id}
                  scope="col"
                  aria-sort={order}
                  className={`px-2 py-1 font-medium whitespace-nowrap text-muted first:pl-3 last:pr-3 ${align(column)} bg-raised ${column.id === "actions" ? atTheEnd : ""}`}
                >
                  {onSort && column.of ? (
                    <button type="button" className="inline-flex min-h-6 items-center gap-1 hover:text-text" onClick={() => sortBy(column.id)}>
                      {column.header}
                      {order === "ascending" && <ArrowUp aria-hidden className="size-3.5" />}
                      {order === "descending" && <ArrowDown aria-hidden className="size-3.5" />}
                    </button>
                  ) : (
                    column.header
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody {...events}>
          {before > 0 && <tr aria-hidden style={{ height: before }} />}
          {drawn.map((of, i) => (
            <Row
              key={isVirtual ? places.get(of.id) : of.id}
              of={of}
              index={first + i}
              columns={columns}
              gone={gone.has(of.id)}
              onSelect={setAt}
              onOpen={onOpen}
            />
          ))}
          {after > 0 && <tr aria-hidden style={{ height: after }} />}
        </tbody>
      </table>
      {(gone.size > 0 || fresh > 0) && (
        <p role="status" className="sticky bottom-0 left-0 border-t border-line bg-raised px-3 py-1 text-muted">
          {t("held", { fresh, gone: gone.size })}
        </p>
      )}
    </div>
  );
}
