import { seconds } from "@/lib/duration";
import type { Language } from "./language";
import { useLanguage } from "./text";

/** Format writes figures and times as a language does. */
export interface Format {
  number: (n: number) => string;
  compact: (n: number) => string;
  rate: (n: number) => string;
  /** percent writes a share from 0 to 1. */
  percent: (share: number) => string;
  bytes: (n: number) => string;
  duration: (goDuration: string | number | undefined) => string;
  time: (at: string | number | undefined) => string;
  ago: (at: string | number | undefined) => string;
}

const byteUnits = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];

const spans: [Intl.RelativeTimeFormatUnit & string, number][] = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/** formats returns the formats of a language. Nothing is shown for what is undefined. */
export function formats(language: string): Format {
  const number = new Intl.NumberFormat(language);
  // Some countries write a million as 1m, which is a minute here.
  const compact = new Intl.NumberFormat(language.startsWith("en") ? "en" : language, { notation: "compact", maximumFractionDigits: 1 });
  const rate = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
  const percent = new Intl.NumberFormat(language, { style: "percent" });
  const time = new Intl.DateTimeFormat(language, { dateStyle: "short", timeStyle: "medium" });
  const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
  return {
    number: (n) => number.format(n),
    compact: (n) => (Math.abs(n) < 10000 ? number.format(n) : compact.format(n)),
    rate: (n) => rate.format(n),
    percent: (share) => percent.format(share),
    bytes: (n) => {
      const step = Math.min(byteUnits.length - 1, Math.max(0, Math.floor(Math.log(Math.max(n, 1)) / Math.log(1024))));
      const unit = byteUnits[step] ?? "byte";
      const options = { style: "unit", unit, unitDisplay: step === 0 ? "narrow" : "short", maximumFractionDigits: 1 } as const;
      return new Intl.NumberFormat(language, options).format(n / 1024 ** step);
    },
    duration: (d) => span(language, typeof d === "number" ? d : seconds(d)),
    time: (at) => (at === undefined ? "" : time.format(new Date(at))),
    ago: (at) => {
      if (at === undefined) return "";
      const past = (Date.now() - new Date(at).getTime()) / 1000;
      const [unit, size] = spans.find(([, s]) => Math.abs(past) >= s) ?? ["second", 1];
      return relative.format(-Math.round(past / size), unit);
    },
  };
}

/** span writes seconds with one or two units: 1d 3h, 2m 5s, 40ms. */
function span(language: string, total: number): string {
  const unit = (n: number, name: string) =>
    new Intl.NumberFormat(language, { style: "unit", unit: name, unitDisplay: "narrow", maximumFractionDigits: 0 }).format(n);
  if (total === 0) return unit(0, "second");
  if (total < 1) return unit(Math.max(1, total * 1000), "millisecond");
  const at = spans.findIndex(([, size]) => total >= size);
  const [name, size] = spans[at] ?? ["second", 1];
  const next = spans[at + 1];
  const rest = next ? Math.floor((total % size) / next[1]) : 0;
  const whole = unit(Math.floor(total / size), name);
  return next && rest > 0 ? `${whole} ${unit(rest, next[0])}` : whole;
}

/** regionOf is the language as it is written where the browser is: dates differ more between countries than words do. */
export function regionOf(language: Language, preferred: readonly string[]): string {
  const [root = language] = language.split("-");
  return preferred.find((tag) => tag.toLowerCase().split("-")[0] === root) ?? language;
}

export function useFormat(): Format {
  return formats(regionOf(useLanguage(), navigator.languages));
}
