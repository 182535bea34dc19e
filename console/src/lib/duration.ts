const units: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 1e-3, "µs": 1e-6, us: 1e-6, ns: 1e-9 };

/** seconds reads a duration as the API writes it: "1m30s", "250ms", "0s". What is none is 0. */
export function seconds(duration: string | undefined): number {
  let sum = 0;
  for (const [, number, unit] of (duration ?? "").matchAll(/([\d.]+)(h|ms|m|s|µs|us|ns)/g)) {
    sum += Number(number) * (units[unit ?? ""] ?? 0);
  }
  return sum;
}
