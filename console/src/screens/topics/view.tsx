import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Schemas } from "@/api/client";
import { useFigures } from "@/api/figures";
import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useFormat } from "@/i18n/format";
import { useLanguage, useText } from "@/i18n/text";
import { Command } from "@/ui/Copy";
import { Head } from "@/ui/Field";
import { SearchBox } from "@/ui/SearchBox";
import { EmptyState, NoMatch, Show } from "@/ui/States";
import { Table } from "@/ui/Table";
import { columnsOf, type Row } from "./columns";
import { messages } from "./messages";
import { route, screen } from "./screen";

const refresh = 2000;
const mostTopics = 500;

/** TopicsView lists the topics with their counts, rates and states. */
export function TopicsView() {
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
            <Topics all={all ?? []} q={q} onClear={() => search("")} />
            {next && <p className="text-muted">{t("first", { count: mostTopics })}</p>}
          </>
        )}
      </Show>
    </div>
  );
}

function Topics({ all, q, onClear }: { all: Schemas["Topic"][]; q: string; onClear: () => void }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ sort }, setFilter] = useFilter(route.useSearch());
  const navigate = useNavigate();
  const rows = useRows(all, q);
  if (all.length === 0) return <NoTopics />;
  if (rows.length === 0) return <NoMatch q={q} count={all.length} onClear={onClear} />;
  return (
    <Table
      label={t("topic")}
      columns={columnsOf(t, f)}
      rows={rows}
      rowID={(row) => row.topic}
      sort={sort}
      onSort={(next) => setFilter({ sort: next })}
      onOpen={({ topic }) => void navigate({ to: "/topics/$topic", params: { topic } })}
    />
  );
}

/** useRows are the topics that fit the filter, with the rates of their groups. */
function useRows(all: Schemas["Topic"][], q: string): Row[] {
  const figures = useFigures();
  return useMemo(() => {
    const rates = new Map<string, { in: number; out: number }>();
    for (const queue of figures.data?.queues ?? []) {
      const sum = rates.get(queue.topic) ?? { in: 0, out: 0 };
      rates.set(queue.topic, { in: Math.max(sum.in, queue.in_per_second), out: sum.out + queue.out_per_second });
    }
    return all
      .filter((topic) => topic.topic.toLowerCase().includes(q.toLowerCase()))
      .map((topic) => ({ ...topic, ...(rates.get(topic.topic) ?? { in: 0, out: 0 }) }));
  }, [all, q, figures.data]);
}

const example = `ferry pub hello '{"name":"世界"}'`;

function NoTopics() {
  const t = useText(messages);
  return (
    <EmptyState title={t("noneTitle")}>
      <p>{t("noneText")}</p>
      <Command text={example} />
      <Command text='ferry.Publish(ctx, broker, "hello", "世界")' />
    </EmptyState>
  );
}
