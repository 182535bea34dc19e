import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { ask, type Schemas } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useFirstPage } from "@/api/query";
import type { State } from "@/parts/messages/state";

type Page = Schemas["MessagePage"];

/** At is how far a search has come: the number of a topic, and the cursor in it. */
interface At {
  topic: number;
  cursor: string;
}

interface Found extends Page {
  at: At;
}

const refresh = 2000;
const pageSize = 200;
const enough = 200; // rows after which somebody has to ask for more
const mostRequests = 40; // in a row, without anybody asking

/** useFind searches topics one after the other, each for what may be asked of it. It goes on by itself until there is something to look at. */
export function useFind(topics: string[], state: State | undefined, conditionOf: (topic: string) => string) {
  const queryKey = ["find", topics, state, topics.map(conditionOf)];
  const [only] = topics;
  const refetchInterval = useFirstPage(queryKey, topics.length === 1 && only !== undefined ? { topic: only } : "topics", refresh);
  const query = useInfiniteQuery<Found, Problem, { pages: Found[] }, unknown[], At>({
    queryKey,
    queryFn: async ({ pageParam: at, signal }) => {
      const topic = topics[at.topic] ?? "";
      const page = await ask("get", "/api/v1/topics/{topic}/messages", { path: { topic }, query: { cursor: at.cursor, limit: pageSize, state, where: conditionOf(topic) } }, signal);
      return { ...page, at };
    },
    initialPageParam: { topic: 0, cursor: "" },
    getNextPageParam: ({ at, next }) => {
      if (next) return { topic: at.topic, cursor: next };
      return at.topic + 1 < topics.length ? { topic: at.topic + 1, cursor: "" } : undefined;
    },
    placeholderData: keepPreviousData,
    enabled: topics.length > 0,
    refetchInterval,
  });
  const pages = query.data?.pages ?? [];
  const rows = useMemo(() => (query.data?.pages ?? []).flatMap((p) => p.messages ?? []), [query.data]); // the same list is not drawn anew
  const { hasNextPage, isFetching, isError, fetchNextPage } = query;
  const more = hasNextPage && !isFetching && !isError && rows.length < enough && pages.length < mostRequests;
  useEffect(() => {
    if (more) void fetchNextPage();
  }, [more, fetchNextPage]);
  return { ...query, rows, ...progress(pages) };
}

/** progress adds up what the topics say: each page of a topic counts from its first one. */
export function progress(pages: readonly { at: At; scanned: number; total: number; faulty?: number }[]) {
  const last = new Map(pages.map((p) => [p.at.topic, p]));
  let scanned = 0;
  let total = 0;
  for (const page of last.values()) {
    scanned += page.scanned;
    total += Math.max(page.scanned, page.total);
  }
  return { scanned, total, topics: last.size, faulty: pages.reduce((sum, p) => sum + (p.faulty ?? 0), 0) };
}

const together = 6;
const mostTopics = 60;

/** topicOf finds the topic that has a message, or nothing. Brokers that cannot look up an id say so, and are searched. */
export async function topicOf(id: string, topics: string[]): Promise<string | undefined> {
  const left = topics.slice(0, mostTopics);
  while (left.length > 0) {
    const answers = await Promise.all(
      left.splice(0, together).map((topic) =>
        ask("get", "/api/v1/topics/{topic}/messages/{id}", { path: { topic, id } }).then(
          ({ messages }) => (messages?.length ? topic : undefined),
          () => undefined,
        ),
      ),
    );
    const found = answers.find((topic) => topic !== undefined);
    if (found !== undefined) return found;
  }
  return undefined;
}
