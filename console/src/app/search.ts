// What stands in the URL of a screen, read with care: anybody can write one.

export type Raw = Record<string, unknown>;

/** text is a text, or nothing. */
export function text(value: unknown): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** oneOf is one of some texts, or nothing. */
export function oneOf<T extends string>(value: unknown, choices: readonly T[]): T | undefined {
  return choices.find((c) => c === value);
}
