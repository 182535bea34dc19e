import type { Schemas } from "@/api/client";

export type Wanted = Schemas["ForceBreaker"]["state"];

/** obeys reports whether a breaker shows what it was asked for. */
export function obeys(breaker: Pick<Schemas["Breaker"], "state" | "forced">, wanted: Wanted): boolean {
  return wanted === "auto" ? !breaker.forced : breaker.forced === true && breaker.state === wanted;
}
