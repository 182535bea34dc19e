import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { ask, type Schemas } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useFirstPage } from "@/api/query";
import { useMay } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { MessageLink } from "@/parts/messages/MessageRows";
import { Bulk } from "@/parts/operation/Bulk";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Select } from "@/ui/Input";
import { columnOf, SearchBox } from "@/ui/SearchBox";
import { EmptyState, ErrorState } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { MessageActions } from "./MessageActions";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { NextHour } from "./NextHour";
import { route } from "./screen";

type Message = Schemas["Message"];
type Page = Schemas["MessagePage"];

const refresh = 5000;
const pageSize = 200;

/** Delayed lists the messages of a topic that are not due yet. The topic with the most stands first. */
export function Delayed({ topics }: { topics: Schemas["Topic"][] }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ topic: chosen }, setFilter] = useFilter(route.useSearch());
  const some = topics.filter((x) => x.delayed > 0 || x.topic === chosen).sort((a, b) => b.delayed - a.delayed || a.topic.localeCompare(b.topic));
  const topic = chosen ?? some[0]?.topic;
  if (!topic) {
    return (
      <EmptyState title={t("none")}>
        <p>{t("noneText")}</p>
        <Command text={`ferry pub mails '{"to":"ann"}' --delay 10m`} />
      </EmptyState>
    );
  }
  return (
    <List topic={topic}>
      <Select
        bare
        label={t("topic")}
        value={topic}
        choices={some.map((x) => ({ value: x.topic, label: t("topicCount", { topic: x.topic, count: f.compact(x.delayed) }) }))}
        onChange={(value) => setFilter({ topic: value })}
      />
    </List>
  );
}

/** List has the choice of its topic beside what is searched for. */
function List({ topic, children }: { topic: string; children: ReactNode }) {
  const t = useText(messages);
  const may = useMay();
  const [{ where = "" }, setFilter] = useFilter(route.useSearch());
  const [all, setAll] = useState<"run" | "cancel">();
  const pages = usePages(topic, where);
  const wrong = pages.error && pages.error.status === 400 && where !== "" ? pages.error : undefined;
  const search = (value: string) => setFilter({ where: value || undefined });
  const rows = pages.data?.pages.flatMap((p) => p.messages ?? []) ?? [];
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-start gap-2">
        {children}
        <SearchBox value={where} onSearch={search} placeholder={t("where")} error={wrong && { text: wrong.detail, column: columnOf(wrong.detail) }} />
        {may("operate", topic) && rows.length > 0 && !wrong && (
          <>
            <Button onClick={() => setAll("run")}>{t("runAll")}</Button>
            <Button look="danger" onClick={() => setAll("cancel")}>
              {t("cancelAll")}
            </Button>
          </>
        )}
      </div>
      {pages.error && !wrong && !pages.data && <ErrorState problem={pages.error} onAgain={() => void pages.refetch()} />}
      {pages.data && !wrong && <Rows topic={topic} rows={rows} pages={pages.data.pages} filtered={where !== ""} onClear={() => search("")} />}
      {pages.hasNextPage && !wrong && (
        <Button className="self-center" disabled={pages.isFetching} onClick={() => void pages.fetchNextPage()}>
          {t("more")}
        </Button>
      )}
      {all && <All act={all} topic={topic} where={where} onClose={() => setAll(undefined)} />}
    </div>
  );
}

function usePages(topic: string, where: string) {
  const queryKey = ["delayed", topic, where];
  const refetchInterval = useFirstPage(queryKey, { topic }, refresh);
  return useInfiniteQuery<Page, Problem, { pages: Page[] }, unknown[], string>({
    queryKey,
    queryFn: ({ pageParam, signal }) =>
      ask("get", "/api/v1/topics/{topic}/messages", { path: { topic }, query: { cursor: pageParam, limit: pageSize, state: "delayed", where } }, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.next || undefined,
    placeholderData: keepPreviousData,
    refetchInterval,
  });
}

interface RowsProps {
  topic: string;
  rows: Message[];
  pages: Page[];
  filtered: boolean;
  onClear: () => void;
}

function Rows({ topic, rows, pages, filtered, onClear }: RowsProps) {
  const t = useText(messages);
  const f = useFormat();
  if (rows.length === 0 && filtered) {
    return (
      <EmptyState title={t("noMatch")}>
        <p>{t("noMatchText", { scanned: pages.reduce((sum, p) => sum + p.scanned, 0) })}</p>
        <p>
          <Button onClick={onClear}>{t("clear")}</Button>
        </p>
      </EmptyState>
    );
  }
  if (rows.length === 0) {
    return (
      <EmptyState title={t("noneHere", { topic })}>
        <p>{t("noneText")}</p>
        <Command text={`ferry pub ${topic} '{"id":1}' --delay 10m`} />
      </EmptyState>
    );
  }
  return (
    <>
      <NextHour due={rows.flatMap((m) => m.due_at ?? [])} />
      <Table label={t("messages")} columns={columnsOf(t, f)} rows={rows} rowID={(m) => `${m.group ?? ""} ${m.id ?? m.ref ?? ""}`} />
    </>
  );
}

function columnsOf(t: Text<keyof typeof en>, f: Format): Column<Message>[] {
  return [
    { id: "due", header: t("due"), cell: (row) => f.time(row.due_at) },
    { id: "in", header: t("in"), cell: (row) => f.ago(row.due_at) },
    { id: "key", header: t("key"), cell: (row) => row.key },
    { id: "id", header: t("id"), cell: (row) => <MessageLink message={row} /> },
    { id: "published", header: t("published"), cell: (row) => f.time(row.published_at) },
    { id: "actions", header: t("actions"), cell: (row) => <MessageActions message={row} /> },
  ];
}

/** All makes everything due that the filter selects, or removes it. */
function All({ act, topic, where, onClose }: { act: "run" | "cancel"; topic: string; where: string; onClose: () => void }) {
  const t = useText(messages);
  const body = { states: ["delayed"], ...(where && { where }) };
  const path = act === "run" ? "/api/v1/topics/{topic}/reschedule" : "/api/v1/topics/{topic}/purge";
  return (
    <Bulk
      title={t(`${act}AllTitle`, { topic })}
      action={t(`${act}All`)}
      typed={topic}
      says={(count) => [t(`${act}AllText`, { count, topic }), where && t("runAllWhere", { where })].filter(Boolean).join(" ")}
      start={(dry) => ask("post", path, { path: { topic }, body: { ...body, dry_run: dry } })}
      onClose={onClose}
    />
  );
}
