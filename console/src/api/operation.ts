import type { Schemas } from "./client";
import { useApi, type Loaded } from "./query";

type Operation = Schemas["Operation"];

const refresh = 500;

/** ended reports whether an operation does nothing any more. */
export function ended(operation: Operation): boolean {
  return operation.state !== "waiting" && operation.state !== "running";
}

/** useOperation follows an operation until it has ended. Without an id there is nothing to follow. */
export function useOperation(id: string | undefined): Loaded<Operation> {
  return useApi("/api/v1/operations/{id}", { path: { id: id ?? "" } }, { enabled: id !== undefined, every: refresh, until: ended, always: true });
}
