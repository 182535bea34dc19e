import { QueryClient, keepPreviousData, useMutation, useQuery, type QueryKey } from "@tanstack/react-query";
import { ask, loggedOut, type Answer, type Input, type PathsOf } from "./client";
import { connection } from "./connection";
import { paused } from "./live";
import { Problem } from "./problem";

/** queries keeps what was answered. It is asked for again once the server is back, or somebody has logged in. */
export const queries = new QueryClient({
  defaultOptions: { queries: { retry: false, staleTime: 1000, refetchOnWindowFocus: true, networkMode: "always" } },
});

connection.subscribe(() => {
  if (!connection.get()) void queries.invalidateQueries();
});
loggedOut.subscribe(() => {
  if (!loggedOut.get()) void queries.invalidateQueries();
});

/** Loaded is what a screen knows: data, perhaps older than the problem beside it, and when it was answered. */
export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  at: number;
  refresh: () => void;
}

interface Options<T> {
  /** every is after how many milliseconds it is asked for again, unless updates are paused. Defaults to never. */
  every?: number;
  /** until ends that: what has come to its end does not change any more. Defaults to never. */
  until?: (data: T) => boolean;
  /** always: also while updates are paused, because somebody waits for it. */
  always?: boolean;
  enabled?: boolean;
}

/** updating reports whether it makes sense to ask again by itself: nobody paused it, and somebody would answer. */
export function updating(always = false): boolean {
  return (!paused.get() || always) && connection.get() === undefined && !loggedOut.get();
}

/** useApi reads from the API. Data of the filter before stays until the new ones are there. */
export function useApi<P extends PathsOf<"get">>(
  path: P,
  input: Input<P, "get">,
  o: Options<Answer<P, "get">> = {},
): Loaded<Answer<P, "get">> {
  const q = useQuery<Answer<P, "get">, Problem>({
    queryKey: [path, input] as QueryKey,
    queryFn: ({ signal }) => ask("get", path, input, signal),
    placeholderData: keepPreviousData,
    enabled: o.enabled ?? true,
    refetchInterval: ({ state: { data } }) => {
      const stopped = !updating(o.always) || (data !== undefined && o.until?.(data));
      return !stopped && (o.every ?? false);
    },
  });
  return {
    data: q.data as Answer<P, "get"> | undefined,
    problem: q.error ?? undefined,
    loading: q.isPending,
    at: q.dataUpdatedAt,
    refresh: () => void q.refetch(),
  };
}

/** useAct changes something by the API, and has everything that is shown asked for again. */
export function useAct<M extends "post" | "put" | "delete", P extends PathsOf<M>>(method: M, path: P) {
  return useMutation<Answer<P, M>, Problem, Input<P, M>>({
    mutationFn: (input) => ask(method, path, input),
    onSettled: () => void queries.invalidateQueries(), // not waited for: whoever acted may be gone with the row they acted on
  });
}
