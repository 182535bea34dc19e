import type { Schemas } from "@/api/client";
import { seconds } from "@/lib/duration";

/** Totals are the figures of all queues together. */
export interface Totals {
  ready: number;
  backlog: number;
  running: number;
  delayed: number;
  dead: number;
  oldest: number;
  in: number;
  out: number;
}

/**
 * totalsOf sums queues up. What was published is counted by the topic, whose group is empty: every group receives it again.
 */
export function totalsOf(queues: Schemas["Queue"][]): Totals {
  const sum: Totals = { ready: 0, backlog: 0, running: 0, delayed: 0, dead: 0, oldest: 0, in: 0, out: 0 };
  for (const q of queues) {
    sum.ready += q.ready;
    sum.backlog += q.ready + q.waiting;
    sum.running += q.inflight;
    sum.delayed += q.delayed;
    sum.dead += q.dead;
    sum.oldest = Math.max(sum.oldest, seconds(q.oldest));
    if (q.group) sum.out += q.out_per_second;
    else sum.in += q.in_per_second;
  }
  return sum;
}
