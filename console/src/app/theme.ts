import { kept } from "@/lib/kept";

export const themes = ["system", "light", "dark"] as const;

/** theme is light, dark, or what the system says. */
export const theme = kept("theme", themes, "system");

/** applyTheme has the page follow it. */
export function applyTheme(): void {
  const apply = () => {
    if (theme.get() === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.get();
  };
  theme.subscribe(apply);
  apply();
}
