import type { Language } from "./language";

export type Values = Record<string, string | number>;

/**
 * fill puts values into a text: {name} for a value, {count|message|messages} for the word that fits a number. Numbers are
 * written as the language does.
 */
export function fill(text: string, values: Values, language: Language): string {
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g, (place, name: string, one?: string, other?: string) => {
    const value = values[name];
    if (value === undefined) return place;
    if (one !== undefined && other !== undefined) {
      return new Intl.PluralRules(language).select(Number(value)) === "one" ? one : other;
    }
    return typeof value === "number" ? new Intl.NumberFormat(language).format(value) : value;
  });
}

/** places are the names of the values that a text takes. */
export function places(text: string): string[] {
  return [...new Set([...text.matchAll(/\{(\w+)/g)].map((m) => m[1] ?? ""))].sort();
}
