import { kept } from "@/lib/kept";

export const languages = ["en", "zh-CN"] as const;
export type Language = (typeof languages)[number];

/** choice is what somebody chose; system is the language of the browser. */
export const choice = kept("language", ["system", ...languages], "system");

/** language returns the one that is shown. */
export function language(): Language {
  const chosen = choice.get();
  if (chosen !== "system") return chosen;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh-CN" : "en";
}
