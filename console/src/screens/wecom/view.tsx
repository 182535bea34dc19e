import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useSession } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useLanguage, useText, type Text } from "@/i18n/text";
import { Badge } from "@/ui/Badge";
import { Command } from "@/ui/Copy";
import { Figure, Figures, Head, Panel } from "@/ui/Field";
import { SearchBox } from "@/ui/SearchBox";
import { EmptyState, NoMatch, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { route, screen } from "./screen";

type Account = Schemas["WeComAccount"];

const refresh = 3000;

/** WeComView tells how far customer service is pulled, and what is wrong with it. */
export function WeComView() {
  const t = useText(messages);
  const shown = useLanguage();
  const { broker } = useSession();
  const [{ q = "" }, setFilter] = useFilter(route.useSearch());
  const loaded = useApi("/api/v1/wecom/accounts", {}, { every: refresh, enabled: broker.wecom });
  if (!broker.wecom) return <NotHere />;
  return (
    <div className="flex flex-col gap-3">
      <Head title={screen.title[shown]}>
        <SearchBox value={q} onSearch={(value) => setFilter({ q: value || undefined })} placeholder={t("search")} />
      </Head>
      <Show of={loaded}>
        {(all) => (
          <>
            <Summary of={all} />
            <Accounts all={all.accounts ?? []} />
            <Lag of={all.lag.messages} />
          </>
        )}
      </Show>
    </div>
  );
}

/** NotHere is for who has a link to another server: this one pulls nothing. */
function NotHere() {
  const t = useText(messages);
  return (
    <EmptyState title={t("notHere")}>
      <p>{t("notHereText")}</p>
    </EmptyState>
  );
}

function Summary({ of }: { of: Schemas["WeComAccounts"] }) {
  const t = useText(messages);
  const f = useFormat();
  const accounts = of.accounts ?? [];
  const broken = accounts.filter((a) => a.problem).length;
  return (
    <Figures>
      <Figure label={t("accounts")}>{f.number(accounts.length)}</Figure>
      <Figure label={t("problems")} warn={broken > 0}>
        {f.number(broken)}
      </Figure>
      <Figure label={t("pulls")}>{f.compact(of.lag.pulls)}</Figure>
      <Figure label={t("lastCallback")}>{f.ago(of.last_callback) || t("never")}</Figure>
      <Figure label={t("token")} warn={!of.token_until}>
        {of.token_until ? f.ago(of.token_until) : t("none")}
      </Figure>
    </Figures>
  );
}

function Accounts({ all }: { all: Account[] }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ q = "" }, setFilter] = useFilter(route.useSearch());
  const rows = useMemo(() => all.filter((a) => `${a.account} ${a.problem ?? ""}`.toLowerCase().includes(q.toLowerCase())), [all, q]);
  if (all.length === 0) {
    return (
      <EmptyState title={t("noAccounts")}>
        <p>{t("noAccountsText")}</p>
        <Command text="ferry wecom check" />
      </EmptyState>
    );
  }
  if (rows.length === 0) return <NoMatch q={q} count={all.length} onClear={() => setFilter({ q: undefined })} />;
  return <Table label={t("accounts")} columns={columnsOf(t, f)} rows={rows} rowID={(a) => a.account} />;
}

function State({ of }: { of: Account }) {
  const t = useText(messages);
  if (of.problem) return <Badge tone="bad">{t("failed")}</Badge>;
  if (!of.pulled) return <Badge tone="info">{t("notYet")}</Badge>;
  return <Badge tone="good">{t("works")}</Badge>;
}

function columnsOf(t: Text<keyof typeof en>, f: Format): Column<Account>[] {
  return [
    { id: "account", header: t("account"), cell: (row) => <span className="font-mono">{row.account}</span> },
    { id: "state", header: t("state"), cell: (row) => <State of={row} /> },
    { id: "age", header: t("cursorAge"), cell: (a) => (a.cursor_age ? f.duration(a.cursor_age) : "–"), right: true },
    { id: "pulled", header: t("pulled"), cell: (row) => f.time(row.pulled) },
    { id: "callback", header: t("lastCallback"), cell: (row) => f.ago(row.last_callback) || t("never") },
    { id: "problem", header: t("problem"), cell: (row) => <span className="text-bad">{row.problem}</span> },
  ];
}

/** Lag is what was pulled and not handled, by the group that has it to do. */
function Lag({ of }: { of: Record<string, number> }) {
  const t = useText(messages);
  const f = useFormat();
  const groups = Object.entries(of).sort(([a], [b]) => a.localeCompare(b));
  return (
    <Panel title={t("waiting")}>
      {groups.length === 0 && <p className="text-muted">{t("noGroups")}</p>}
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        {groups.map(([group, count]) => (
          <div key={group} className="contents">
            <dt>
              <Link to="/groups" search={{ q: group } as never} className="text-accent hover:underline">
                {group}
              </Link>
            </dt>
            <dd className={`tabular-nums ${count > 0 ? "" : "text-muted"}`}>{f.compact(count)}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
