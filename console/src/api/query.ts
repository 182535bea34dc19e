import { QueryClient, keepPreviousData, useMutation, useQuery, type QueryKey } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ask, loggedOut, type Answer, type Input, type PathsOf } from "./client";
import { connection } from "./connection";
import { paused, useStream, type Change } from "./live";
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

/** Changes is what tells that something has changed: the figures of a topic or of all of them, or operations. */
export type Changes = { topic: string } | "topics" | "operations";

interface Options<T> {
  /** every is after how many milliseconds it is asked for again, unless updates are paused. Defaults to never. */
  every?: number;
  /** on has it asked for when there is a change, at most that often, instead of blindly. */
  on?: Changes | undefined;
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

const aging = 10000; // milliseconds after which it is asked how old messages are that nobody takes

/**
 * useChanges asks again when a stream tells of a change, at most every so many milliseconds. It returns how often to ask where there is no
 * such stream: never, unless the server refuses it.
 */
export function useChanges(on: Changes | undefined, every: number, again: () => void): number | false {
  const plan = useRef<{ at: number; timer: ReturnType<typeof setTimeout> }>(undefined);
  const asked = useRef(Date.now());
  const soon = (wait = every) => {
    const at = asked.current + wait;
    if (plan.current && plan.current.at <= at) return;
    clearTimeout(plan.current?.timer);
    const ask = () => {
      plan.current = undefined;
      asked.current = Date.now();
      if (updating()) again();
    };
    plan.current = { at, timer: setTimeout(ask, Math.max(0, at - Date.now())) };
  };
  useEffect(() => () => clearTimeout(plan.current?.timer), []);
  const topic = typeof on === "object" ? on.topic : "";
  const changed = (_: unknown, change: Change) => change !== "none" && soon(change === "older" ? Math.max(every, aging) : every);
  const figures = useStream("/api/v1/figures/events", { query: { topic } }, "figures", changed, {
    enabled: on === "topics" || topic !== "",
    opened: () => soon(),
  });
  const operations = useStream("/api/v1/operations/events", {}, "operation", () => soon(), { enabled: on === "operations", opened: () => soon() });
  if (on === undefined) return every > 0 && every;
  return (!figures || !operations) && every;
}

/** useApi reads from the API. Data of the filter before stays until the new ones are there. */
export function useApi<P extends PathsOf<"get">>(
  path: P,
  input: Input<P, "get">,
  o: Options<Answer<P, "get">> = {},
): Loaded<Answer<P, "get">> {
  const key = keyOf(path, input);
  const enabled = o.enabled ?? true;
  const interval = useChanges(enabled ? o.on : undefined, o.every ?? 0, () => again(key));
  const q = useQuery<Answer<P, "get">, Problem>({
    queryKey: key,
    queryFn: ({ signal }) => ask("get", path, input, signal),
    placeholderData: keepPreviousData,
    enabled,
    refetchInterval: ({ state: { data } }) => {
      const stopped = !updating(o.always) || (data !== undefined && o.until?.(data));
      return !stopped && interval;
    },
  });
  const problem = useProblem(JSON.stringify(key), q.error, q.isSuccess && !q.isPlaceholderData);
  return {
    data: q.data as Answer<P, "get"> | undefined,
    problem,
    loading: q.isPending && !problem,
    at: q.dataUpdatedAt,
    refresh: () => void q.refetch(),
  };
}

/** useProblem keeps the problem of a question while it is asked once more, so that what is shown does not flicker. */
function useProblem(key: string, error: Problem | null, solved: boolean): Problem | undefined {
  const [known, setKnown] = useState<{ key: string; problem: Problem }>();
  if (error && known?.problem !== error) setKnown({ key, problem: error });
  else if (solved && known) setKnown(undefined);
  return error ?? (!solved && known?.key === key ? known.problem : undefined);
}

/** again has something asked for once more, unless that is being done. */
function again(key: QueryKey): void {
  void queries.invalidateQueries({ queryKey: key, exact: true }, { cancelRefetch: false });
}

/**
 * useFirstPage keeps a list fresh as long as it has one page: what somebody went through page by page does not change under their eyes. It
 * returns the interval for the query of the list.
 */
export function useFirstPage(key: QueryKey, on: Changes, every: number): (query: { state: { data?: Pages | undefined } }) => number | false {
  const interval = useChanges(on, every, () => {
    if (onePage(queries.getQueryData<Pages>(key))) again(key);
  });
  return ({ state: { data } }) => updating() && onePage(data) && interval;
}

interface Pages {
  pages: readonly unknown[];
}

function onePage(data: Pages | undefined): boolean {
  return (data?.pages.length ?? 0) <= 1;
}

function keyOf(path: string, input: unknown): QueryKey {
  return [path, input];
}

/** remember keeps what a stream has told, as if it had been asked for. */
export function remember<P extends PathsOf<"get">>(path: P, input: Input<P, "get">, answer: Answer<P, "get">): void {
  queries.setQueryData(keyOf(path, input), answer);
}

/** useAct changes something by the API, and has everything that is shown asked for again. */
export function useAct<M extends "post" | "put" | "delete", P extends PathsOf<M>>(method: M, path: P) {
  return useMutation<Answer<P, M>, Problem, Input<P, M>>({
    mutationFn: (input) => ask(method, path, input),
    onSettled: () => void queries.invalidateQueries(), // not waited for: whoever acted may be gone with the row they acted on
  });
}
