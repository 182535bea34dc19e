import type { ReactNode } from "react";

/** Figure is one number with its name, for the head of a screen. */
export function Figure({ label, children, warn = false }: { label: string; children: ReactNode; warn?: boolean }) {
  return (
    <div className="min-w-0 rounded border border-line bg-surface px-3 py-2">
      <dt className="truncate text-muted">{label}</dt>
      <dd className={`text-xl tabular-nums ${warn ? "text-warn" : ""}`}>{children}</dd>
    </div>
  );
}

export function Figures({ children }: { children: ReactNode }) {
  return <dl className="grid grid-cols-2 gap-2 sm:grid-cols-3 lg:grid-cols-6">{children}</dl>;
}

/** Panel is a part of a screen with a heading of its own. */
export function Panel({ title, children, actions }: { title: string; children: ReactNode; actions?: ReactNode }) {
  return (
    <section className="min-w-0 rounded border border-line bg-surface">
      <header className="flex min-h-10 items-center justify-between gap-2 border-b border-line px-3 py-1.5">
        <h2 className="font-semibold">{title}</h2>
        {actions}
      </header>
      <div className="p-3">{children}</div>
    </section>
  );
}

/** Head is the title of a screen, with what can be done on it. */
export function Head({ title, children, note }: { title: ReactNode; children?: ReactNode; note?: ReactNode }) {
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <h1 className="min-w-0 text-lg font-semibold break-all">{title}</h1>
      {note}
      <div className="ml-auto flex flex-wrap items-center gap-2">{children}</div>
    </header>
  );
}

/** field is the look of what is typed into. */
export const field = "w-full rounded border border-line bg-ground px-2 py-1 font-mono text-text";
