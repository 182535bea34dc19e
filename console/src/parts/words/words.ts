import { useText } from "@/i18n/text";
import { en } from "./messages.en";
import { zh } from "./messages.zh";

type Key = keyof typeof en;
type Of<K> = K extends `${infer Kind}.${string}` ? Kind : never;

/** useWords says in the language that is shown what a word of the API means. One that is not known here stands as it is. */
export function useWords(): (kind: Of<Key>, word: string | undefined) => string {
  const t = useText({ en, "zh-CN": zh });
  return (kind, word = "") => {
    const key = `${kind}.${word}`;
    return key in en ? t(key as Key) : word;
  };
}
