import { useState } from "react";
import type { Schemas } from "@/api/client";
import { ended, useOperation } from "@/api/operation";
import { Problem } from "@/api/problem";

type Operation = Schemas["Operation"];

/** Bulk is how far somebody is who wants an operation done: it counts first. */
export interface Bulk {
  /** result is what the count has found. Undefined: it has not ended. */
  result: Operation | undefined;
  problem: Problem | undefined;
  busy: boolean;
  count: () => void;
  run: (begun: (operation: string) => void) => void;
}

/** useBulk submits an operation twice: the first time it only counts, the second time it acts. */
export function useBulk(start: (dry: boolean) => Promise<Operation>): Bulk {
  const [counting, setCounting] = useState<string>();
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const counted = useOperation(counting);
  const submit = (dry: boolean, begun: (operation: string) => void) => {
    setBusy(true);
    setProblem(undefined);
    start(dry)
      .then(({ operation }) => begun(operation))
      .catch((p: unknown) => setProblem(p instanceof Problem ? p : new Problem(0, "unknown", String(p))))
      .finally(() => setBusy(false));
  };
  const current = counting !== undefined && counted.data?.operation === counting ? counted.data : undefined;
  return {
    result: current && ended(current) ? current : undefined,
    problem: problem ?? counted.problem,
    busy,
    count: () => {
      setCounting(undefined);
      submit(true, setCounting);
    },
    run: (begun) => submit(false, begun),
  };
}
