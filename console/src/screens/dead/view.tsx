import { useMemo } from "react";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { ask, type Schemas } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useApi, useFirstPage } from "@/api/query";
import { useMay } from "@/api/session";
import { useSight } from "@/api/sight";
import { useFilter } from "@/app/filter";
import { useLanguage, useText } from "@/i18n/text";
import { ofKind, searchOf, type Sight } from "@/lib/condition";
import { MessageRows } from "@/parts/messages/MessageRows";
import { TopicChoice } from "@/parts/messages/TopicChoice";
import { OperationPanel } from "@/parts/operation/Progress";
import { Button } from "@/ui/Button";
import { Head } from "@/ui/Field";
import { columnOf, SearchBox } from "@/ui/SearchBox";
import { EmptyState, ErrorState, Loading } from "@/ui/States";
import { Bulk } from "./Bulk";
import { Kinds } from "./Kinds";
import { messages } from "./messages";
import { route, screen } from "./screen";
import { useTally, type Selection } from "./tally";

type Page = Schemas["MessagePage"];

const mostTopics = 500;
const pageSize = 200;
const refresh = 2000;

/** DeadView shows what failed for good, like errors together, and repairs all that a filter selects. */
export function DeadView() {
  const sight = useSight();
  return sight ? <Dead sight={sight} /> : <Loading />;
}

function Dead({ sight }: { sight: (topic?: string) => Sight }) {
  const t = useText(messages);
  const shown = useLanguage();
  const [filter, setFilter] = useFilter(route.useSearch());
  const { selection, hint, kind, typed } = useSelection(sight);
  const tally = useTally(selection, filter.by ?? "fingerprint");
  const wrong = filter.q !== undefined && tally.error?.status === 400 ? tally.error : undefined;
  const column = wrong && kind === "expression" ? columnOf(wrong.detail) : undefined;
  const filtered = filter.q !== undefined || filter.kind !== undefined || filter.group !== undefined;
  const clear = () => setFilter({ q: undefined, kind: undefined, group: undefined });
  return (
    <div className="flex flex-col gap-3">
      <Head title={screen.title[shown]}>{tally.sum && !wrong && <Bulk selection={selection} matched={tally.sum.matched} />}</Head>
      {filter.op && <OperationPanel id={filter.op} title={t("operation")} onClose={() => setFilter({ op: undefined })} />}
      <div className="flex flex-wrap items-start gap-2">
        <Topics />
        <StateChoice />
        <div className="flex min-w-60 grow">
          <SearchBox
            value={filter.q ?? ""}
            onSearch={(q) => setFilter({ q: q || undefined })}
            placeholder={t("search")}
            error={wrong && { text: wrong.detail, column: column !== undefined && filter.kind !== undefined ? column - 1 : column }}
          />
        </div>
      </div>
      {kind === "text" && <p className="text-muted">{t(hint)}</p>}
      <Chips />
      {tally.error && !wrong && !tally.sum && <ErrorState problem={tally.error} onAgain={() => void tally.refetch()} />}
      {tally.sum && !wrong && (tally.sum.matched > 0 || tally.hasNextPage) && (
        <>
          <Kinds tally={tally.sum} where={typed} more={tally.hasNextPage && !tally.isFetching ? () => void tally.fetchNextPage() : undefined} />
          <Letters selection={selection} />
        </>
      )}
      {tally.sum && !wrong && tally.sum.matched === 0 && !tally.hasNextPage && <Nothing filtered={filtered} faulty={tally.sum.faulty} scanned={tally.sum.scanned} onClear={clear} />}
    </div>
  );
}

/** useSelection is what the URL selects, as the API takes it. */
function useSelection(sight: (topic?: string) => Sight) {
  const may = useMay();
  const { q = "", topic, group, state, kind } = route.useSearch();
  const seen = sight(topic);
  const search = searchOf(q, seen);
  const where = ofKind(search.where, kind);
  const selection = useMemo<Selection>(
    () => ({ ...(topic && { topic }), ...(group && { group }), ...(state && { state }), ...(where && { where }) }),
    [topic, group, state, where],
  );
  const hint = !may("payload", topic) ? "asTextNoBody" : seen.bodies && seen.headers ? "asText" : "asTextMasked";
  return { selection, hint, kind: search.kind, typed: search.where } as const;
}

function Topics() {
  const [{ topic }, setFilter] = useFilter(route.useSearch());
  const topics = useApi("/api/v1/topics", { query: { limit: mostTopics } });
  const names = topics.data?.topics?.map((one) => one.topic) ?? [];
  return <TopicChoice topics={names} value={topic} onChange={(next) => setFilter({ topic: next, group: undefined })} />;
}

/** StateChoice: letters that handlers could not handle, or that nobody could read. */
function StateChoice() {
  const t = useText(messages);
  const [{ state }, setFilter] = useFilter(route.useSearch());
  return (
    <select
      aria-label={t("state")}
      className="h-8 rounded border border-line bg-surface px-1"
      value={state ?? ""}
      onChange={(e) => setFilter({ state: e.target.value === "invalid" ? "invalid" : undefined })}
    >
      <option value="">{t("dead")}</option>
      <option value="invalid">{t("invalid")}</option>
    </select>
  );
}

/** Chips are the parts of the filter that were chosen by a click, and can be taken away by one. */
function Chips() {
  const t = useText(messages);
  const [{ kind, group }, setFilter] = useFilter(route.useSearch());
  if (kind === undefined && group === undefined) return null;
  return (
    <div className="flex flex-wrap gap-2">
      {kind !== undefined && (
        <Button className="max-w-full" aria-label={t("without", { what: kind })} onClick={() => setFilter({ kind: undefined })}>
          <span className="truncate font-mono">{kind}</span> ×
        </Button>
      )}
      {group !== undefined && (
        <Button aria-label={t("without", { what: group })} onClick={() => setFilter({ group: undefined })}>
          {t("ofGroup", { group })} ×
        </Button>
      )}
    </div>
  );
}

function Letters({ selection }: { selection: Selection }) {
  const t = useText(messages);
  const queryKey = ["letters", selection];
  const refetchInterval = useFirstPage(queryKey, selection.topic ? { topic: selection.topic } : "topics", refresh);
  const query = useInfiniteQuery<Page, Problem, { pages: Page[] }, unknown[], string>({
    queryKey,
    queryFn: ({ pageParam, signal }) => ask("get", "/api/v1/dead", { query: { ...selection, cursor: pageParam, limit: pageSize } }, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.next || undefined,
    placeholderData: keepPreviousData,
    refetchInterval,
  });
  const pages = query.data?.pages ?? [];
  const rows = useMemo(() => (query.data?.pages ?? []).flatMap((p) => p.messages ?? []), [query.data]); // the same list is not drawn anew
  const last = pages.at(-1);
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 text-muted">
        <p>{t("scanned", { found: rows.length, scanned: last?.scanned ?? 0, total: Math.max(last?.scanned ?? 0, last?.total ?? 0) })}</p>
        {query.hasNextPage && (
          <Button disabled={query.isFetching} onClick={() => void query.fetchNextPage()}>
            {t("more")}
          </Button>
        )}
      </div>
      {query.error && <ErrorState problem={query.error} onAgain={() => void query.refetch()} />}
      <MessageRows rows={rows} label={t("letters")} error />
    </>
  );
}

function Nothing({ filtered, faulty, scanned, onClear }: { filtered: boolean; faulty: number; scanned: number; onClear: () => void }) {
  const t = useText(messages);
  if (!filtered) {
    return (
      <EmptyState title={t("none")}>
        <p>{t("noneText")}</p>
      </EmptyState>
    );
  }
  return (
    <EmptyState title={t("noMatch")}>
      <p>{t("looked", { scanned })}</p>
      {faulty > 0 && <p>{t("faulty", { count: faulty })}</p>}
      <p>
        <Button onClick={onClear}>{t("clear")}</Button>
      </p>
    </EmptyState>
  );
}
