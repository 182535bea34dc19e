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
import { Severity } from "./state";

type Entry = Schemas["AlertEntry"];

const most = 500;
const tones: Record<Entry["what"], Tone> = { fired: "bad", resolved: "good", acknowledged: "info", raised: "warn" };

/** What is what happened to an alert, in a word. */
export function What({ of }: { of: Entry["what"] }) {
  const t = useText(messages);
  return <Badge tone={tones[of]}>{t(`what.${of}`)}</Badge>;
}

/** History lists what happened to alerts in the last days, newest first. */
export function History() {
  const t = useText(messages);
  const [{ q = "" }, setFilter] = useFilter(route.useSearch());
  const loaded = useApi("/api/v1/alert-history", { query: { limit: most } }, { every: 5000 });
  return (
    <div className="flex flex-col gap-3">
      <SearchBox value={q} onSearch={(value) => setFilter({ q: value || undefined })} placeholder={t("search")} />
      <Show of={loaded}>{({ entries }) => <List all={entries ?? []} />}</Show>
    </div>
  );
}

function List({ all }: { all: Entry[] }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ q = "" }, setFilter] = useFilter(route.useSearch());
  const open = ({ rule, subject }: Entry) => setFilter({ tab: "alerts", rule, subject, q: undefined });
  const rows = useMemo(() => all.filter((e) => [e.rule, e.subject, e.text].join(" ").toLowerCase().includes(q.toLowerCase())), [all, q]);
  if (all.length === 0) {
    return (
      <EmptyState title={t("noHistory")}>
        <p>{t("noHistoryText")}</p>
      </EmptyState>
    );
  }
  if (rows.length === 0) return <NoMatch q={q} count={all.length} onClear={() => setFilter({ q: undefined })} />;
  return (
    <>
      <Table label={t("history")} columns={columnsOf(t, f)} rows={rows} rowID={(e) => `${e.at} ${e.what} ${e.rule}\n${e.subject}`} onOpen={open} />
      {all.length === most && <p className="text-muted">{t("newest", { count: most })}</p>}
    </>
  );
}

function columnsOf(t: Text<keyof typeof en>, f: Format): Column<Entry>[] {
  return [
    { id: "at", header: t("at"), cell: (row) => f.time(row.at) },
    { id: "what", header: t("whatHappened"), cell: (row) => <What of={row.what} /> },
    { id: "severity", header: t("severity"), cell: (row) => <Severity of={row.severity} /> },
    { id: "rule", header: t("rule"), cell: (row) => <span className="font-medium">{row.rule}</span> },
    { id: "subject", header: t("subject"), cell: (row) => row.subject },
    { id: "text", header: t("text"), cell: (row) => row.text },
  ];
}
