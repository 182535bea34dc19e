import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { ask, type Schemas } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useFirstPage } from "@/api/query";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { columnOf, SearchBox } from "@/ui/SearchBox";
import { EmptyState, ErrorState } from "@/ui/States";
import { MessageRows } from "./MessageRows";
import { messages } from "./messages";
import type { State } from "./state";

type Page = Schemas["MessagePage"];

const pageSize = 100;
const refresh = 2000;

interface Props {
  topic: string;
  state?: State | undefined;
  where: string;
  onWhere: (where: string) => void;
}

/** MessageTable lists the messages of a topic, page by page, and says how many it has looked at for that. */
export function MessageTable({ topic, state, where, onWhere }: Props) {
  const t = useText(messages);
  const pages = usePages(topic, state, where);
  const wrong = pages.error && pages.error.status === 400 && where !== "" ? pages.error : undefined;
  return (
    <div className="flex flex-col gap-2">
      <SearchBox
        value={where}
        onSearch={onWhere}
        placeholder={t("where")}
        error={wrong && { text: wrong.detail, column: columnOf(wrong.detail) }}
      />
      {pages.error && !wrong && !pages.data && <ErrorState problem={pages.error} onAgain={() => void pages.refetch()} />}
      {pages.data && !wrong && <Pages pages={pages.data.pages} state={state} onClear={() => onWhere("")} filtered={where !== ""} />}
      {pages.hasNextPage && !wrong && (
        <Button className="self-center" disabled={pages.isFetching} onClick={() => void pages.fetchNextPage()}>
          {t("more")}
        </Button>
      )}
    </div>
  );
}

function usePages(topic: string, state: State | undefined, where: string) {
  const queryKey = ["messages", topic, state, where];
  const refetchInterval = useFirstPage(queryKey, { topic }, refresh);
  return useInfiniteQuery<Page, Problem, { pages: Page[] }, unknown[], string>({
    queryKey,
    queryFn: ({ pageParam, signal }) =>
      ask("get", "/api/v1/topics/{topic}/messages", { path: { topic }, query: { cursor: pageParam, limit: pageSize, state, where } }, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.next || undefined,
    placeholderData: keepPreviousData,
    refetchInterval,
  });
}

function Pages({ pages, state, filtered, onClear }: { pages: Page[]; state: State | undefined; filtered: boolean; onClear: () => void }) {
  const t = useText(messages);
  const rows = useMemo(() => pages.flatMap((p) => p.messages ?? []), [pages]); // the same list is not drawn anew
  const scanned = pages.at(-1)?.scanned ?? 0; // each page counts from the first one
  const total = Math.max(scanned, pages.at(-1)?.total ?? 0);
  if (rows.length === 0 && filtered) {
    return (
      <EmptyState title={t("noMatch")}>
        <p>{t("scanned", { found: 0, scanned, total })}</p>
        <p>
          <Button onClick={onClear}>{t("clear")}</Button>
        </p>
      </EmptyState>
    );
  }
  if (rows.length === 0) {
    return (
      <EmptyState title={t(state === "dead" ? "noDead" : state === "delayed" ? "noDelayed" : "none")}>
        <p>{t(state === "dead" ? "noneDead" : state === "delayed" ? "noneDelayed" : "noneText")}</p>
      </EmptyState>
    );
  }
  return (
    <>
      <p role="status" className="text-muted">
        {t("scanned", { found: rows.length, scanned, total })}
      </p>
      <MessageRows label={t("messages")} rows={rows} error={state === "dead"} oneTopic />
    </>
  );
}
