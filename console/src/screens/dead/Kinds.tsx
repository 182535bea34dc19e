import type { Schemas } from "@/api/client";
import { useFilter } from "@/app/filter";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { both, literal, onDay } from "@/lib/condition";
import { Button } from "@/ui/Button";
import { Panel } from "@/ui/Field";
import { Table, type Column } from "@/ui/Table";
import { messages } from "./messages";
import { groupings, route } from "./screen";
import { identity, type added } from "./sum";
import type { By } from "./tally";

type Bucket = Schemas["Bucket"];

/** Kinds are the letters counted by what they have in common. One of them narrows the filter to itself. */
export function Kinds({ tally, where, more }: { tally: ReturnType<typeof added>; where: string; more: (() => void) | undefined }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ by = "fingerprint" }, setFilter] = useFilter(route.useSearch());
  const choose = (b: Bucket) =>
    setFilter({
      ...(b.topic !== undefined && { topic: b.topic }),
      ...(b.group !== undefined && { group: b.group }),
      ...(b.fingerprint !== undefined && { kind: b.fingerprint }),
      ...condition(by, b, where),
    });
  const columns: Column<Bucket>[] = [
    { id: "count", header: t("count"), cell: (row) => f.number(row.count), right: true },
    {
      id: "what",
      header: t(by),
      cell: (row) => (
        <button
          type="button"
          title={nameOf(by, row)}
          className="max-w-full truncate py-0.5 text-left font-mono text-accent hover:underline"
          onClick={() => choose(row)}
        >
          {nameOf(by, row) || t("nothing")}
        </button>
      ),
    },
    ...(by === "fingerprint" ? [{ id: "reason", header: t("reason"), cell: (row) => row.reason } as Column<Bucket>] : []),
    ...(by === "fingerprint" || by === "group"
      ? [{ id: "queue", header: t("queue"), cell: (row) => `${row.topic ?? ""} / ${row.group ?? ""}` } as Column<Bucket>]
      : []),
    { id: "first", header: t("first"), cell: (row) => f.ago(row.first_died) },
    { id: "last", header: t("last"), cell: (row) => f.ago(row.last_died) },
    { id: "bytes", header: t("bytes"), cell: (row) => f.bytes(row.bytes), right: true },
  ];
  return (
    <Panel
      title={t("kinds", { count: tally.matched })}
      actions={
        <label className="flex items-center gap-2 text-muted">
          {t("by")}
          <select className="rounded border border-line bg-surface px-1 py-0.5 text-text" value={by} onChange={(e) => setFilter({ by: groupings.find((g) => g === e.target.value) })}>
            {groupings.map((g) => (
              <option key={g} value={g}>
                {t(g)}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <div className="flex flex-col gap-2">
        <Table label={t(by)} columns={columns} rows={tally.buckets} rowID={identity} onOpen={choose} short />
        <p className="flex flex-wrap items-center gap-2 text-muted">
          {t("counted", { scanned: tally.scanned, total: tally.total })}
          {tally.others > 0 && <span>{t("others", { count: tally.others })}</span>}
          {tally.faulty > 0 && <span>{t("faulty", { count: tally.faulty })}</span>}
          {more && <Button onClick={more}>{t("more")}</Button>}
        </p>
      </div>
    </Panel>
  );
}

function nameOf(by: By, b: Bucket): string {
  return b[by] ?? "";
}

/** condition is what selects a bucket, where no part of the URL of its own does. */
function condition(by: By, b: Bucket, where: string): { q?: string } {
  if (by === "reason" || by === "key") return { q: both(where, `${by} == ${literal(b[by] ?? "")}`) };
  if (by === "day" && b.day) return { q: both(where, onDay(b.day)) };
  return {};
}
