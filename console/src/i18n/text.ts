import { useStore } from "@/lib/store";
import { fill, type Values } from "./fill";
import { choice, language, type Language } from "./language";

/** Catalogue has the texts of one part of the console in each language, under the same keys. */
export type Catalogue<K extends string = string> = Record<Language, Record<K, string>>;

/** Text returns the text of a key with values in it. */
export type Text<K extends string> = (key: K, values?: Values) => string;

export function useLanguage(): Language {
  useStore(choice);
  return language();
}

/** useText returns the texts of a catalogue in the language that is shown. */
export function useText<K extends string>(catalogue: Catalogue<K>): Text<K> {
  const shown = useLanguage();
  return (key, values = {}) => fill(catalogue[shown][key], values, shown);
}
