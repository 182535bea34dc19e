import type { Schemas } from "@/api/client";

/** Lag is how fast what waits for a group grows. */
export interface Lag {
  trend: "rising" | "falling" | "steady";
  /** zero is after how many seconds nothing waits any more, if it goes on like this; undefined is never. */
  zero: number | undefined;
}

const noise = 0.05; // messages per second: below that nothing moves

/** lagOf finds the trend of a queue from its rates. */
export function lagOf(ready: number, queue: Pick<Schemas["Queue"], "in_per_second" | "out_per_second"> | undefined): Lag {
  const grows = (queue?.in_per_second ?? 0) - (queue?.out_per_second ?? 0);
  const trend = grows > noise ? "rising" : grows < -noise ? "falling" : "steady";
  if (ready === 0) return { trend: "steady", zero: 0 }; // what comes is delayed, or taken at once
  return { trend, zero: trend === "falling" ? ready / -grows : undefined };
}
