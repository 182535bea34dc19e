import { kept } from "@/lib/kept";
import { Store } from "@/lib/store";

export const themes = ["system", "light", "dark"] as const;

/** theme is light, dark, or what the system says. */
export const theme = kept("theme", themes, "system");

const dark = matchMedia("(prefers-color-scheme: dark)");

/** systemDark is what the system says now: some turn dark in the evening. */
export const systemDark = new Store(dark.matches);
dark.addEventListener("change", () => systemDark.set(dark.matches));

/** applyTheme has the page follow it. */
export function applyTheme(): void {
  const apply = () => {
    if (theme.get() === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.get();
  };
  theme.subscribe(apply);
  apply();
}
