import { Link, useNavigate } from "@tanstack/react-router";
import { Radio, Send, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useMay, useSession } from "@/api/session";
import { useSight } from "@/api/sight";
import { useFilter } from "@/app/filter";
import { useLanguage, useText } from "@/i18n/text";
import { MessageRows } from "@/parts/messages/MessageRows";
import { StateChoice } from "@/parts/messages/StateChoice";
import { TopicChoice } from "@/parts/messages/TopicChoice";
import { Publish } from "@/screens/topic/Publish";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Head } from "@/ui/Field";
import { columnOf, SearchBox } from "@/ui/SearchBox";
import { EmptyState, ErrorState, Loading, Show } from "@/ui/States";
import { couldBeID, searchOf, type Sight } from "@/lib/condition";
import { topicOf, useFind } from "./find";
import { messages } from "./messages";
import { removable, RemoveAll } from "./RemoveAll";
import { route, screen } from "./screen";
import { Tail } from "./Tail";

const mostTopics = 500;

/** MessagesView finds messages: of one topic or of all, by id, key, trace id, text or expression. */
export function MessagesView() {
  const shown = useLanguage();
  const topics = useApi("/api/v1/topics", { query: { limit: mostTopics } });
  const sight = useSight();
  return (
    <div className="flex flex-col gap-3">
      <Head title={screen.title[shown]}>
        <Buttons />
      </Head>
      <Show of={topics}>{({ topics: all }) => (sight ? <Search all={all ?? []} sight={sight} /> : <Loading />)}</Show>
    </div>
  );
}

/** Buttons are for one topic: publishing to it, and seeing what comes where the broker can tell. */
function Buttons() {
  const t = useText(messages);
  const may = useMay();
  const { broker } = useSession();
  const [{ topic, tail }, setFilter] = useFilter(route.useSearch());
  const [publishing, setPublishing] = useState(false);
  if (topic === undefined) return null;
  return (
    <>
      {broker.tail && (
        <Button aria-pressed={tail !== undefined} onClick={() => setFilter({ tail: tail ? undefined : "yes" })}>
          <Radio aria-hidden className="size-4" />
          {t(tail ? "tailStop" : "tail")}
        </Button>
      )}
      {may("publish", topic) && (
        <Button look="primary" onClick={() => setPublishing(true)}>
          <Send aria-hidden className="size-4" />
          {t("publish")}
        </Button>
      )}
      {publishing && <Publish topic={topic} onClose={() => setPublishing(false)} />}
    </>
  );
}

function Search({ all, sight }: { all: Schemas["Topic"][]; sight: (topic: string) => Sight }) {
  const t = useText(messages);
  const may = useMay();
  const navigate = useNavigate();
  const { broker } = useSession();
  const [{ q = "", topic, state, tail }, setFilter] = useFilter(route.useSearch());
  const [removing, setRemoving] = useState(false); // not below: the list is empty when it is done
  const mayRemove = topic !== undefined && may("operate", topic) && (state === undefined || removable.includes(state));
  const names = all.map((one) => one.topic);
  const topics = topic === undefined ? names : [topic];
  const searchIn = (name: string) => searchOf(q, sight(name));
  const search = searchIn(topics[0] ?? ""); // an expression is the same for all
  const tailing = tail !== undefined && topic !== undefined && broker.tail;
  const found = useFind(tailing ? [] : topics, state, (name) => searchIn(name).where);
  const wrong = q !== "" && found.error?.status === 400 ? found.error : undefined;

  const submit = async (typed: string) => {
    const there = couldBeID(typed) ? await topicOf(typed, topics) : undefined;
    if (there !== undefined) void navigate({ to: "/messages/$topic/$id", params: { topic: there, id: typed } });
    else setFilter({ q: typed || undefined });
  };
  return (
    <>
      <div className="flex flex-wrap items-start gap-2">
        <TopicChoice topics={names} value={topic} onChange={(next) => setFilter({ topic: next, tail: undefined })} />
        <StateChoice value={state} onChange={(next) => setFilter({ state: next })} />
        <div className="flex min-w-60 grow">
          <SearchBox
            value={q}
            onSearch={(typed) => void submit(typed)}
            placeholder={t("search")}
            error={wrong && { text: wrong.detail, column: search.kind === "expression" ? columnOf(wrong.detail) : undefined }}
          />
        </div>
      </div>
      {search.kind === "text" && <p className="text-muted">{t(lookedInto(topics, sight, may))}</p>}
      {tailing && <Tail topic={topic} />}
      {names.length === 0 && <Nothing />}
      {!tailing && !wrong && names.length > 0 && <Found found={found} topics={topics.length} filtered={q !== "" || state !== undefined} onClear={() => setFilter({ q: undefined, state: undefined })} onRemove={mayRemove ? () => setRemoving(true) : undefined} />}
      {removing && topic !== undefined && <RemoveAll topic={topic} state={state} where={search.where} onClose={() => setRemoving(false)} />}
    </>
  );
}

/** lookedInto says where a text is looked for. */
function lookedInto(topics: string[], sight: (topic: string) => Sight, may: ReturnType<typeof useMay>) {
  if (!topics.every((name) => may("payload", name))) return "asTextNoBody";
  return topics.every((name) => sight(name).bodies && sight(name).headers) ? "asText" : "asTextMasked";
}

interface FoundProps {
  found: ReturnType<typeof useFind>;
  /** topics is how many are searched. */
  topics: number;
  filtered: boolean;
  onClear: () => void;
  /** onRemove removes everything that fits. Undefined: it is not offered. */
  onRemove: (() => void) | undefined;
}

function Found({ found, topics, filtered, onClear, onRemove }: FoundProps) {
  const t = useText(messages);
  const { rows, scanned, total, faulty } = found;
  if (found.error && rows.length === 0) return <ErrorState problem={found.error} onAgain={() => void found.refetch()} />;
  const more = found.hasNextPage && (
    <Button disabled={found.isFetching} onClick={() => void found.fetchNextPage()}>
      {t("more")}
    </Button>
  );
  const looked = topics > 1 ? ` · ${t("ofTopics", { done: found.topics, all: topics })}` : "";
  const said = found.isFetching && rows.length === 0 ? t("searching", { scanned }) : t("scanned", { found: rows.length, scanned, total });
  if (rows.length === 0 && !found.isFetching) {
    return (
      <EmptyState title={t(filtered ? "noMatch" : "none")}>
        <p role="status">
          {said}
          {looked}
        </p>
        {faulty > 0 && <p>{t("faulty", { count: faulty })}</p>}
        {!filtered && <p>{t("noneText")}</p>}
        <p className="flex justify-center gap-2">
          {more}
          {filtered && <Button onClick={onClear}>{t("clear")}</Button>}
        </p>
      </EmptyState>
    );
  }
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 text-muted">
        <p role="status">
          {said}
          {looked}
        </p>
        {faulty > 0 && <p>{t("faulty", { count: faulty })}</p>}
        {more}
        {onRemove && rows.length > 0 && (
          <Button look="danger" className="ml-auto" onClick={onRemove}>
            <Trash2 aria-hidden className="size-4" />
            {t("removeAll")}
          </Button>
        )}
      </div>
      {found.error && <ErrorState problem={found.error} onAgain={() => void found.fetchNextPage()} />}
      {rows.length > 0 && <MessageRows rows={rows} label={t("messages")} />}
    </>
  );
}

function Nothing() {
  const t = useText(messages);
  return (
    <EmptyState title={t("noTopics")}>
      <p>
        {t("noTopicsText")}{" "}
        <Link to="/topics" className="underline">
          {t("topics")}
        </Link>
      </p>
      <Command text={`ferry pub hello '{"name":"世界"}'`} />
    </EmptyState>
  );
}
