import { memo, useLayoutEffect, useRef, type ReactNode } from "react";
import type { Listed } from "./rows";

/** Column is what a table shows of each row. */
export interface Column<T> {
  id: string;
  header: string;
  cell: (row: T) => ReactNode;
  /** of is what the column is sorted by. Without it, it is not. */
  of?: (row: T) => string | number | undefined;
  right?: boolean;
}

export const rowHeight = 34;
export const atTheEnd = "sm:sticky sm:right-0"; // actions stay in sight, whatever a wide table is scrolled to; a phone has no room for that

const actions = "actions"; // the column whose cells have a state of their own: dialogs that are open

interface RowProps<T> {
  of: Listed<T>;
  index: number;
  columns: Column<T>[];
  gone: boolean;
  onSelect: (index: number) => void;
  onOpen: ((row: T) => void) | undefined;
}

/** Row is a row of a table. Its elements may have been those of another row, which was scrolled away. */
export const Row = memo(function Row<T>({ of: { id, row }, index, columns, gone, onSelect, onOpen }: RowProps<T>) {
  const element = useRef<HTMLTableRowElement>(null);
  useFocusStays(element, id);
  return (
    <tr
      ref={element}
      data-row={index}
      aria-rowindex={index + 2}
      tabIndex={-1}
      data-gone={gone || undefined}
      onClick={() => onSelect(index)}
      onDoubleClick={() => onOpen?.(row)}
      className="border-t border-line focus:bg-raised data-gone:text-muted data-gone:line-through"
      style={ofRow}
    >
      {columns.map((column) => {
        const shown = column.cell(row);
        return (
          <td
            key={column.id === actions ? id : column.id}
            title={typeof shown === "string" ? shown : undefined} // what is too long is cut
            className={`px-2 first:pl-3 last:pr-3 ${align(column)} ${column.id === actions ? `bg-surface whitespace-nowrap *:-ml-2 ${atTheEnd}` : "max-w-80 truncate 2xl:max-w-[36rem]"}`}
          >
            {shown}
          </td>
        );
      })}
    </tr>
  );
}) as <T>(props: RowProps<T>) => ReactNode;

const ofRow = { height: rowHeight };

/** useFocusStays gives the focus to the table when the row that has it becomes another one: a key would act on what nobody chose. */
function useFocusStays(element: { current: HTMLTableRowElement | null }, id: string) {
  const was = useRef(id);
  useLayoutEffect(() => {
    if (was.current !== id && element.current?.contains(document.activeElement)) {
      element.current.closest<HTMLElement>("[data-table]")?.focus({ preventScroll: true });
    }
    was.current = id;
  }, [element, id]);
}

export function align<T>(column: Column<T>): string {
  return column.right ? "text-right tabular-nums" : "text-left";
}
