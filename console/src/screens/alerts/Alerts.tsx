import { useMemo, useState } from "react";
import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Badge } from "@/ui/Badge";
import { Opener } from "@/ui/columns";
import { Command } from "@/ui/Copy";
import { Drawer } from "@/ui/Dialog";
import { Select } from "@/ui/Input";
import { SearchBox } from "@/ui/SearchBox";
import { EmptyState, NoMatch, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { AlertActions } from "./AlertActions";
import { AlertDetails } from "./AlertDetails";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { worstFirst } from "./order";
import { route, statuses } from "./screen";
import { Silence, type Silenced } from "./Silence";
import { Severity, Status } from "./state";

type Alert = Schemas["Alert"];

const refresh = 3000;

/** Alerts lists what fires, is about to, or was over lately, and whether anybody looks. */
export function Alerts() {
  const t = useText(messages);
  const [{ q = "", status, rule, subject }, setFilter] = useFilter(route.useSearch());
  const loaded = useApi("/api/v1/alerts", { query: { resolved: true } }, { every: refresh });
  const choices = [{ value: "", label: t("open") }, ...statuses.map((value) => ({ value, label: t(value) }))];
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-start gap-2">
        <Select bare label={t("state")} value={status ?? ""} choices={choices} onChange={(value) => setFilter({ status: statuses.find((s) => s === value) })} />
        <SearchBox value={q} onSearch={(value) => setFilter({ q: value || undefined })} placeholder={t("search")} />
      </div>
      <Show of={loaded}>
        {(list) => (
          <>
            <Watched of={list} />
            <List of={list} />
          </>
        )}
      </Show>
      {rule !== undefined && subject !== undefined && (
        <Drawer title={`${rule} · ${subject}`} open onClose={() => setFilter({ rule: undefined, subject: undefined })}>
          <AlertDetails rule={rule} subject={subject} />
        </Drawer>
      )}
    </div>
  );
}

/** Watched says whether anybody evaluates rules: without that, nothing fires whatever is wrong. */
function Watched({ of }: { of: Schemas["AlertList"] }) {
  const t = useText(messages);
  const f = useFormat();
  if (!of.alive) return <Badge tone="warn">{t("nobody")}</Badge>;
  return <p className="text-muted">{t("watched", { rules: of.rules, at: f.ago(of.evaluated), every: f.duration(of.every) })}</p>;
}

function List({ of }: { of: Schemas["AlertList"] }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ q = "", status }, setFilter] = useFilter(route.useSearch());
  const [silencing, setSilencing] = useState<Silenced>();
  const all = useMemo(
    () => (of.alerts ?? []).filter((a) => (status ? a.status === status : a.status !== "resolved")).sort(worstFirst),
    [of.alerts, status],
  );
  const rows = useMemo(() => all.filter((a) => [a.rule, a.subject, a.text].join(" ").toLowerCase().includes(q.toLowerCase())), [all, q]);
  const open = ({ rule, subject }: Alert) => setFilter({ rule, subject });
  if (all.length === 0) return <Nothing of={of} />;
  if (rows.length === 0) return <NoMatch q={q} count={all.length} onClear={() => setFilter({ q: undefined })} />;
  return (
    <>
      <Table label={t("alerts")} columns={columnsOf(t, f, open, setSilencing)} rows={rows} rowID={(a) => `${a.rule}\n${a.subject}`} onOpen={open} />
      {silencing && <Silence of={silencing} onClose={() => setSilencing(undefined)} />}
    </>
  );
}

/** Nothing says that all is well, or that nobody would know. */
function Nothing({ of }: { of: Schemas["AlertList"] }) {
  const t = useText(messages);
  const [{ status }] = useFilter(route.useSearch());
  if (!of.alive) {
    return (
      <EmptyState title={t("nobody")}>
        <p>{t("nobodyText")}</p>
        <Command text="ferry alert alive" />
      </EmptyState>
    );
  }
  return (
    <EmptyState title={t(status === "resolved" ? "noResolved" : "noAlerts")}>
      <p>{t("noAlertsText")}</p>
    </EmptyState>
  );
}

function columnsOf(t: Text<keyof typeof en>, f: Format, open: (a: Alert) => void, silence: (s: Silenced) => void): Column<Alert>[] {
  return [
    { id: "state", header: t("state"), cell: (row) => <Status of={row.status} /> },
    { id: "severity", header: t("severity"), cell: (row) => <Severity of={row.severity} /> },
    {
      id: "rule",
      header: t("rule"),
      cell: (row) => <Opener onOpen={() => open(row)}>{row.rule}</Opener>,
    },
    { id: "subject", header: t("subject"), cell: (row) => row.subject },
    { id: "text", header: t("text"), cell: (row) => row.text },
    { id: "since", header: t("since"), cell: (a) => f.ago(a.status === "resolved" ? a.ended : a.since) },
    { id: "notices", header: t("notices"), cell: (row) => f.number(row.notices), right: true },
    { id: "who", header: t("acknowledged"), cell: (row) => row.acknowledged },
    { id: "actions", header: t("actions"), cell: (row) => <AlertActions of={row} onSilence={silence} /> },
  ];
}
