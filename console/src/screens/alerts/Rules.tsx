import { Plus } from "lucide-react";
import { useMemo, useState } from "react";
import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useMay } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Badge } from "@/ui/Badge";
import { Opener } from "@/ui/columns";
import { Button } from "@/ui/Button";
import { Drawer } from "@/ui/Dialog";
import { SearchBox } from "@/ui/SearchBox";
import { EmptyState, NoMatch, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { RuleDetails } from "./RuleDetails";
import { RuleForm } from "./RuleForm";
import { route } from "./screen";
import { Severity } from "./state";

export type Rule = Schemas["AlertRule"];
type Alert = Schemas["Alert"];

const refresh = 5000;

/** Rules lists what is evaluated, with what each rule says now, and opens one. */
export function Rules() {
  const t = useText(messages);
  const may = useMay();
  const [{ q = "", rule }, setFilter] = useFilter(route.useSearch());
  const [making, setMaking] = useState(false);
  const loaded = useApi("/api/v1/alert-rules", {}, { every: refresh });
  const alerts = useApi("/api/v1/alerts", {}, { every: refresh });
  const ofRule = (name: string) => (alerts.data?.alerts ?? []).filter((a) => a.rule === name);
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-start gap-2">
        <SearchBox value={q} onSearch={(value) => setFilter({ q: value || undefined })} placeholder={t("searchRules")} />
        {may("admin") && (
          <Button onClick={() => setMaking(true)}>
            <Plus aria-hidden className="size-4" />
            {t("newRule")}
          </Button>
        )}
      </div>
      <Show of={loaded}>
        {({ rules, figures }) => (
          <>
            <List all={rules ?? []} ofRule={ofRule} />
            {rule !== undefined && (
              <Drawer title={rule} open onClose={() => setFilter({ rule: undefined })}>
                <Opened rule={rules?.find((r) => r.name === rule)} figures={figures ?? []} alerts={ofRule(rule)} />
              </Drawer>
            )}
            {making && <RuleForm figures={figures ?? []} onClose={() => setMaking(false)} />}
          </>
        )}
      </Show>
    </div>
  );
}

function Opened({ rule, figures, alerts }: { rule: Rule | undefined; figures: string[]; alerts: Alert[] }) {
  const t = useText(messages);
  if (rule) return <RuleDetails rule={rule} figures={figures} alerts={alerts} />;
  return (
    <EmptyState title={t("ruleGone")}>
      <p>{t("ruleGoneText")}</p>
    </EmptyState>
  );
}

function List({ all, ofRule }: { all: Rule[]; ofRule: (name: string) => Alert[] }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ q = "" }, setFilter] = useFilter(route.useSearch());
  const rows = useMemo(() => all.filter((r) => [r.name, r.when].join(" ").toLowerCase().includes(q.toLowerCase())), [all, q]);
  const open = (r: Rule) => setFilter({ rule: r.name });
  if (all.length === 0) {
    return (
      <EmptyState title={t("noRules")}>
        <p>{t("noRulesText")}</p>
      </EmptyState>
    );
  }
  if (rows.length === 0) return <NoMatch q={q} count={all.length} onClear={() => setFilter({ q: undefined })} />;
  return <Table label={t("rules")} columns={columnsOf(t, f, open, ofRule)} rows={rows} rowID={(r) => r.name ?? ""} onOpen={open} />;
}

/** RuleState is what a rule says now: how many of its subjects fire. */
export function RuleState({ rule, alerts }: { rule: Rule; alerts: Alert[] }) {
  const t = useText(messages);
  const firing = alerts.filter((a) => a.status === "firing").length;
  const pending = alerts.filter((a) => a.status === "pending").length;
  if (rule.disabled) return <Badge tone="paused">{t("disabled")}</Badge>;
  if (firing > 0) return <Badge tone="bad">{t("firingCount", { count: firing })}</Badge>;
  if (pending > 0) return <Badge tone="warn">{t("pendingCount", { count: pending })}</Badge>;
  return <Badge tone={rule.when ? "good" : "info"}>{t(rule.when ? "quiet" : "ofEvents")}</Badge>;
}

function columnsOf(t: Text<keyof typeof en>, f: Format, open: (r: Rule) => void, ofRule: (name: string) => Alert[]): Column<Rule>[] {
  return [
    {
      id: "rule",
      header: t("rule"),
      cell: (row) => <Opener onOpen={() => open(row)}>{row.name}</Opener>,
    },
    { id: "now", header: t("now"), cell: (r) => <RuleState rule={r} alerts={ofRule(r.name ?? "")} /> },
    { id: "severity", header: t("severity"), cell: (row) => <Severity of={row.severity} /> },
    { id: "when", header: t("when"), cell: (row) => <code>{row.when}</code> },
    { id: "threshold", header: t("threshold"), cell: (r) => r.threshold !== undefined && f.rate(r.threshold), right: true },
    { id: "for", header: t("for"), cell: (r) => r.for && f.duration(r.for), right: true },
    { id: "channels", header: t("channels"), cell: (row) => (row.channels?.length ? row.channels.join(", ") : t("everyChannel")) },
    { id: "kept", header: t("from"), cell: (row) => t(row.kept ? "kept" : "configured") },
  ];
}
