import { getCoreRowModel, getSortedRowModel, useReactTable, type ColumnDef, type SortingState } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { useText } from "@/i18n/text";
import { messages } from "./messages";
import { useSteady } from "./steady";

export type Column<T> = ColumnDef<T> & { meta?: { right?: boolean } };

const rowHeight = 34;
const virtualFrom = 60;
const atTheEnd = "sm:sticky sm:right-0"; // actions stay in sight, whatever a wide table is scrolled to; a phone has no room for that

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
  // The table sorts again, and draws again, whenever it is given another list: the same sort has to be the same one.
  const sorting = useMemo<SortingState>(() => (sort ? [{ id: sort.replace(/^-/, ""), desc: sort.startsWith("-") }] : []), [sort]);
  const table = useReactTable({
    data: rows,
    columns,
    getRowId: rowID,
    state: { sorting },
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
    enableSortingRemoval: false,
    autoResetAll: false, // there are no pages whose number a new list would reset
  });
  const { rows: all, gone, fresh, events } = useSteady(table.getRowModel().rows);
  const virtual = useVirtualizer({
    count: all.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => rowHeight,
    overscan: 4,
  });
  const items = all.length < virtualFrom ? all.map((_, index) => ({ index })) : virtual.getVirtualItems();
  const before = all.length < virtualFrom ? 0 : (items[0]?.index ?? 0) * rowHeight;
  const after = all.length < virtualFrom ? 0 : (all.length - 1 - (items.at(-1)?.index ?? all.length - 1)) * rowHeight;

  const move = (to: number) => {
    const next = Math.max(0, Math.min(all.length - 1, to));
    setAt(next);
    virtual.scrollToIndex(next);
    requestAnimationFrame(() => scroll.current?.querySelector<HTMLElement>(`tr[data-row="${next}"]`)?.focus());
  };
  const onKey = (e: KeyboardEvent) => {
    if (e.target instanceof HTMLInputElement) return;
    const row = all[at];
    if (e.key === "j" || e.key === "ArrowDown") move(at + 1);
    else if (e.key === "k" || e.key === "ArrowUp") move(at - 1);
    else if (e.key === "Enter" && row && e.target instanceof HTMLTableRowElement) onOpen?.(row.original);
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
      <table className="w-full border-collapse" aria-rowcount={all.length + 1}>
        <caption className="sr-only">
          {label}, {t("rows", { count: all.length })}
        </caption>
        <thead className="sticky top-0 z-10 bg-raised">
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} aria-rowindex={1}>
              {group.headers.map((header) => {
                const sorted = header.column.getIsSorted();
                const title = draw(header.column.columnDef.header, header.getContext());
                return (
                  <th
                    key={header.id}
                    scope="col"
                    aria-sort={sorted === "asc" ? "ascending" : sorted === "desc" ? "descending" : undefined}
                    className={`px-2 py-1 font-medium whitespace-nowrap text-muted first:pl-3 last:pr-3 ${align<T>(header.column.columnDef)} bg-raised ${header.column.id === "actions" ? atTheEnd : ""}`}
                  >
                    {onSort && header.column.getCanSort() ? (
                      <button type="button" className="inline-flex min-h-6 items-center gap-1 hover:text-text" onClick={() => sortBy(header.column.id)}>
                        {title}
                        {sorted === "asc" && <ArrowUp aria-hidden className="size-3.5" />}
                        {sorted === "desc" && <ArrowDown aria-hidden className="size-3.5" />}
                      </button>
                    ) : (
                      title
                    )}
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody {...events}>
          {before > 0 && <tr aria-hidden style={{ height: before }} />}
          {items.map(({ index }) => {
            const row = all[index];
            if (!row) return null;
            return (
              <tr
                key={row.id}
                data-row={index}
                aria-rowindex={index + 2}
                tabIndex={-1}
                data-gone={gone.has(row.id) || undefined}
                onClick={() => setAt(index)}
                onDoubleClick={() => onOpen?.(row.original)}
                className="border-t border-line focus:bg-raised data-gone:text-muted data-gone:line-through"
                style={{ height: rowHeight }}
              >
                {row.getVisibleCells().map((cell) => (
                  <td key={cell.id} className={`px-2 first:pl-3 last:pr-3 ${align<T>(cell.column.columnDef)} ${cell.column.id === "actions" ? `bg-surface whitespace-nowrap ${atTheEnd}` : "max-w-72 truncate 2xl:max-w-[36rem]"}`}>
                    {draw(cell.column.columnDef.cell, cell.getContext())}
                  </td>
                ))}
              </tr>
            );
          })}
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

function align<T>(column: Column<T>): string {
  return column.meta?.right ? "text-right tabular-nums" : "text-left";
}

/**
 * draw calls what draws a cell. It is no component of its own: columns are made anew with each drawing, and a component that is another
 * one each time would lose its focus and what is open in it.
 */
function draw<C>(of: ((context: C) => unknown) | string | undefined, context: C): ReactNode {
  return (typeof of === "function" ? of(context) : of) as ReactNode;
}
