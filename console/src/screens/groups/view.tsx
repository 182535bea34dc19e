import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { Schemas } from "@/api/client";
import { useFigures } from "@/api/figures";
import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useLanguage, useText, type Text } from "@/i18n/text";
import { seconds } from "@/lib/duration";
import { whyGroup } from "@/lib/why";
import { TopicLink } from "@/parts/topic/TopicLink";
import { WhyBadge } from "@/parts/why/Why";
import { numberColumn } from "@/ui/columns";
import { Command } from "@/ui/Copy";
import { Head } from "@/ui/Field";
import { SearchBox } from "@/ui/SearchBox";
import { EmptyState, NoMatch, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { Actions, Reset } from "./Actions";
import { lagOf, type Lag } from "./lag";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { route, screen } from "./screen";
import { Trend } from "./Trend";

const refresh = 2000;
const mostTopics = 500;

/** Row is a group of a topic. */
export interface Row {
  topic: Schemas["Topic"];
  group: Schemas["Group"];
  lag: Lag;
}

/** GroupsView lists the groups of every topic: what waits for them, whether it grows, and when it is done. */
export function GroupsView() {
  const t = useText(messages);
  const shown = useLanguage();
  const [{ q = "" }, setFilter] = useFilter(route.useSearch());
  const topics = useApi("/api/v1/topics", { query: { limit: mostTopics } }, { on: "topics", every: refresh });
  const search = (value: string) => setFilter({ q: value || undefined });
  return (
    <div className="flex flex-col gap-3">
      <Head title={screen.title[shown]}>
        <SearchBox value={q} onSearch={search} placeholder={t("search")} />
      </Head>
      <Show of={topics}>
        {({ topics: all, next }) => (
          <>
            <Groups topics={all ?? []} q={q} onClear={() => search("")} />
            {next && <p className="text-muted">{t("first", { count: mostTopics })}</p>}
          </>
        )}
      </Show>
    </div>
  );
}

function Groups({ topics, q, onClear }: { topics: Schemas["Topic"][]; q: string; onClear: () => void }) {
  const t = useText(messages);
  const f = useFormat();
  const navigate = useNavigate();
  const [{ sort }, setFilter] = useFilter(route.useSearch());
  const [reset, setReset] = useState<Row>();
  const all = useRows(topics);
  const rows = useMemo(() => all.filter((r) => `${r.topic.topic}/${r.group.group}`.toLowerCase().includes(q.toLowerCase())), [all, q]);
  if (all.length === 0) {
    return (
      <EmptyState title={t("none")}>
        <p>{t("noneText")}</p>
        <Command text="ferry sub orders --group NAME" />
      </EmptyState>
    );
  }
  if (rows.length === 0) return <NoMatch q={q} count={all.length} onClear={onClear} />;
  return (
    <>
      <Table
        label={t("groups")}
        columns={columnsOf(t, f, setReset)}
        rows={rows}
        rowID={(r) => `${r.topic.topic}/${r.group.group}`}
        sort={sort}
        onSort={(next) => setFilter({ sort: next })}
        onOpen={({ topic: { topic } }) => void navigate({ to: "/topics/$topic", params: { topic }, search: { tab: "groups" } as never })}
      />
      {reset && <Reset row={reset} onClose={() => setReset(undefined)} />}
    </>
  );
}

/** useRows are the groups with what the rates say of them. */
function useRows(topics: Schemas["Topic"][]): Row[] {
  const figures = useFigures();
  return useMemo(() => {
    const queues = new Map(figures.data?.queues?.map((queue) => [`${queue.topic}\n${queue.group ?? ""}`, queue]));
    return topics.flatMap((topic) =>
      (topic.groups ?? []).map((group) => ({ topic, group, lag: lagOf(group.ready, queues.get(`${topic.topic}\n${group.group}`)) })),
    );
  }, [topics, figures.data]);
}

function columnsOf(t: Text<keyof typeof en>, f: Format, onReset: (row: Row) => void): Column<Row>[] {
  const number = (id: keyof typeof en, of: (g: Schemas["Group"]) => number, write = f.compact) =>
    numberColumn<Row>({ id, header: t(id), of: (row) => of(row.group), write, bad: id === "dead" });
  return [
    {
      id: "topic",
      header: t("topic"),
      of: (row) => row.topic.topic,
      cell: (row) => <TopicLink topic={row.topic.topic} />,
    },
    { id: "group", header: t("group"), of: (row) => row.group.group, cell: (row) => row.group.group },
    {
      id: "state",
      header: t("state"),
      of: (row) => whyGroup(row.topic, row.group).state,
      cell: (row) => <WhyBadge why={whyGroup(row.topic, row.group)} />,
    },
    number("lag", (g) => g.ready),
    { id: "trend", header: t("trend"), of: (row) => row.lag.trend, cell: (row) => <Trend lag={row.lag} /> },
    {
      id: "toZero",
      header: t("toZero"),
      of: (row) => row.lag.zero ?? Infinity,
      cell: ({ lag }) => (lag.zero === undefined ? <span className="text-muted" title={t("neverText")}>{t("never")}</span> : lag.zero > 0 ? f.duration(lag.zero) : "–"),
      right: true,
    },
    number("running", (g) => g.inflight),
    number("retrying", (g) => g.waiting),
    number("dead", (g) => g.dead),
    number("consumers", (g) => g.consumers),
    number("oldest", (g) => seconds(g.oldest), f.duration),
    {
      id: "actions",
      header: t("actions"),
      cell: (row) => <Actions row={row} onReset={() => onReset(row)} />,
    },
  ];
}
