import type { Screen } from "./screen";

const found = import.meta.glob<{ screen: Screen }>("../screens/*/screen.ts", { eager: true });

/** screens are those of every folder in screens, in the order of the navigation. */
export function screens(): Screen[] {
  return Object.values(found)
    .map((module) => module.screen)
    .sort((a, b) => (a.nav?.order ?? Infinity) - (b.nav?.order ?? Infinity));
}
