import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { ask, type Schemas } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useFirstPage } from "@/api/query";
import type { groupings } from "./screen";
import { added } from "./sum";

type Tally = Schemas["Tally"];

export type By = (typeof groupings)[number];

/** Selection is which letters are meant: what lists, counts and acts on them are given alike. */
export interface Selection {
  topic?: string;
  group?: string;
  state?: "invalid";
  where?: string;
}

const refresh = 2000;
const mostRequests = 50; // in a row, without anybody asking

/** useTally counts letters by what they have in common, all of them as far as that can be done quickly. */
export function useTally(selection: Selection, by: By) {
  const queryKey = ["tally", selection, by];
  const refetchInterval = useFirstPage(queryKey, selection.topic ? { topic: selection.topic } : "topics", refresh);
  const query = useInfiniteQuery<Tally, Problem, { pages: Tally[] }, unknown[], string>({
    queryKey,
    queryFn: ({ pageParam, signal }) => ask("get", "/api/v1/dead/tally", { query: { ...selection, by, cursor: pageParam } }, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.next || undefined,
    placeholderData: keepPreviousData,
    refetchInterval,
  });
  const pages = query.data?.pages ?? [];
  const { hasNextPage, isFetching, isError, fetchNextPage } = query;
  const more = hasNextPage && !isFetching && !isError && pages.length < mostRequests;
  useEffect(() => {
    if (more) void fetchNextPage();
  }, [more, fetchNextPage]);
  return { ...query, sum: pages.length > 0 ? added(pages) : undefined };
}
