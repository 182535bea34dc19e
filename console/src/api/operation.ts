import { useEffect, useState } from "react";
import type { Schemas } from "./client";
import { useStream } from "./live";
import { queries, remember, useApi, type Loaded } from "./query";

type Operation = Schemas["Operation"];

const refresh = 2000; // where the server refuses the stream

/** ended reports whether an operation does nothing any more. */
export function ended(operation: Operation): boolean {
  return operation.state !== "waiting" && operation.state !== "running";
}

/**
 * useOperation follows an operation until it has ended, and then has everything that is shown asked for again: the operation
 * has changed it. Without an id there is nothing to follow.
 */
export function useOperation(id: string | undefined): Loaded<Operation> {
  const input = { path: { id: id ?? "" } };
  const [working, setWorking] = useState(true);
  const loaded = useApi("/api/v1/operations/{id}", input, { enabled: id !== undefined, every: working ? 0 : refresh, until: ended, always: true });
  const open = id !== undefined && !(loaded.data?.operation === id && ended(loaded.data));
  const given = useStream<"/api/v1/operations/{id}/events", Operation>(
    "/api/v1/operations/{id}/events",
    input,
    "operation",
    (operation) => remember("/api/v1/operations/{id}", input, operation),
    { enabled: open, always: true },
  );
  if (given !== working) setWorking(given);
  const over = loaded.data?.operation === id && loaded.data !== undefined && !loaded.data.dry_run && ended(loaded.data);
  useEffect(() => {
    if (over) void queries.invalidateQueries();
  }, [over, id]);
  return loaded;
}
