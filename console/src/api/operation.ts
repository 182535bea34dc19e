import { useEffect } from "react";
import type { Schemas } from "./client";
import { queries, useApi, type Loaded } from "./query";

type Operation = Schemas["Operation"];

const refresh = 500;

/** ended reports whether an operation does nothing any more. */
export function ended(operation: Operation): boolean {
  return operation.state !== "waiting" && operation.state !== "running";
}

/**
 * useOperation follows an operation until it has ended, and then has everything that is shown asked for again: the operation
 * has changed it. Without an id there is nothing to follow.
 */
export function useOperation(id: string | undefined): Loaded<Operation> {
  const loaded = useApi("/api/v1/operations/{id}", { path: { id: id ?? "" } }, { enabled: id !== undefined, every: refresh, until: ended, always: true });
  const over = loaded.data?.operation === id && loaded.data !== undefined && !loaded.data.dry_run && ended(loaded.data);
  useEffect(() => {
    if (over) void queries.invalidateQueries();
  }, [over, id]);
  return loaded;
}
