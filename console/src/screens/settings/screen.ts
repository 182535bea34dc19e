import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Settings } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { oneOf, type Raw } from "@/app/search";

export const tabs = ["about", "look", "access"] as const;

export const route = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  validateSearch: (raw: Raw) => ({ tab: oneOf(raw["tab"], tabs) }),
  component: lazyRouteComponent(() => import("./view"), "SettingsView"),
});

export const screen: Screen = {
  route,
  title: { en: "Settings", "zh-CN": "设置" },
  nav: { order: 120, icon: Settings, keys: "g ,", to: "/settings" },
};
