import type { Schemas } from "@/api/client";
import { totalsOf } from "./totals";

/** Point is everything together at a moment, in seconds since 1970. */
export interface Point {
  at: number;
  ready: number;
  dead: number;
  in: number;
  out: number;
}

/** keptPoint is a point that the server has remembered. */
export function keptPoint(p: Schemas["Point"]): Point {
  return { at: Date.parse(p.at ?? "") / 1000, ready: p.ready, dead: p.dead, in: p.in_per_second, out: p.out_per_second };
}

/** livePoint is what the stream tells now. */
export function livePoint({ at, queues }: Schemas["Figures"]): Point {
  const { ready, dead, in: came, out } = totalsOf(queues ?? []);
  return { at: Date.parse(at ?? "") / 1000, ready, dead, in: came, out };
}

/** joined are the points that were kept, and after the last of them those that came since, as far back as the span says. */
export function joined(kept: Point[], live: Point[], span: number): Point[] {
  const last = kept.at(-1)?.at ?? 0;
  const all = [...kept, ...live.filter((p) => p.at > last)];
  const end = all.at(-1)?.at ?? 0;
  return all.filter((p) => p.at > end - span);
}
