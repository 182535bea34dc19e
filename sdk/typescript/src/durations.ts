/** Durations: milliseconds or a text such as "1m30s" here, texts on their way. */

/** Milliseconds, or a text such as "1.5s" or "1h30m". */
export type Duration = number | string;

const units: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, µs: 1e-3, μs: 1e-3, ns: 1e-6 };

/** toText is the duration as the server reads it. */
export function toText(duration: Duration): string {
  return typeof duration === "string" ? duration : `${duration.toFixed(3)}ms`;
}

/** toMilliseconds is the duration in milliseconds. A text that is none is 0. */
export function toMilliseconds(duration: Duration): number {
  if (typeof duration === "number") return duration;
  let total = 0;
  for (const [, number, unit] of duration.matchAll(/(\d+(?:\.\d+)?)(h|ms|us|µs|μs|ns|m|s)/g)) {
    total += Number(number) * (units[unit ?? ""] ?? 0);
  }
  return duration.startsWith("-") ? -total : total;
}
