import { useMemo } from "react";
import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Badge, type Tone } from "@/ui/Badge";
import { SearchBox } from "@/ui/SearchBox";
import { EmptyState, NoMatch, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { route } from "./screen";
import { Verify } from "./Verify";

type Action = Schemas["Action"];

const most = 500;
const tones: Record<Action["outcome"], Tone> = { done: "good", failed: "bad", denied: "warn" };

/** Actions lists who did what, newest first, and verifies that nothing was changed in it. */
export function Actions() {
  const t = useText(messages);
  const [{ q = "" }, setFilter] = useFilter(route.useSearch());
  const loaded = useApi("/api/v1/actions", { query: { limit: most } }, { every: 5000 });
  const search = (value: string) => setFilter({ q: value || undefined });
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-start gap-2">
        <SearchBox value={q} onSearch={search} placeholder={t("search")} />
        <Verify />
      </div>
      <Show of={loaded}>
        {({ actions, next }) => (
          <>
            <List all={actions ?? []} q={q} onClear={() => search("")} />
            {next && <p className="text-muted">{t("noMatchText", { count: most })}</p>}
          </>
        )}
      </Show>
    </div>
  );
}

function List({ all, q, onClear }: { all: Action[]; q: string; onClear: () => void }) {
  const t = useText(messages);
  const f = useFormat();
  const rows = useMemo(() => all.filter((a) => [a.who, a.what, a.topic, a.group, a.detail].join(" ").toLowerCase().includes(q.toLowerCase())), [all, q]);
  if (all.length === 0) {
    return (
      <EmptyState title={t("noActions")}>
        <p>{t("noActionsText")}</p>
      </EmptyState>
    );
  }
  if (rows.length === 0) return <NoMatch q={q} count={all.length} onClear={onClear} />;
  return <Table label={t("actions")} columns={columnsOf(t, f)} rows={rows} rowID={(a) => String(a.sequence)} />;
}

function columnsOf(t: Text<keyof typeof en>, f: Format): Column<Action>[] {
  return [
    { id: "at", header: t("at"), cell: (row) => f.time(row.at) },
    { id: "who", header: t("who"), cell: (row) => <span className="font-medium">{row.who}</span> },
    { id: "what", header: t("what"), cell: (row) => row.what },
    { id: "outcome", header: t("outcome"), cell: (row) => <Badge tone={tones[row.outcome]}>{t(`outcome.${row.outcome}`)}</Badge> },
    { id: "topic", header: t("topic"), cell: (row) => row.topic },
    { id: "group", header: t("group"), cell: (row) => row.group },
    { id: "filter", header: t("filter"), cell: (row) => <span className="font-mono">{row.filter}</span> },
    { id: "count", header: t("count"), cell: (row) => (row.count ? f.compact(row.count) : ""), right: true },
    { id: "detail", header: t("detail"), cell: (row) => row.detail },
  ];
}
