import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { ListChecks } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { oneOf, text, type Raw } from "@/app/search";

export const tabs = ["operations", "actions"] as const;

export const route = createRoute({
  getParentRoute: () => root,
  path: "/operations",
  validateSearch: (raw: Raw) => ({
    tab: oneOf(raw["tab"], tabs),
    open: oneOf(raw["open"], ["yes"]),
    operation: text(raw["operation"]),
    q: text(raw["q"]),
  }),
  component: lazyRouteComponent(() => import("./view"), "OperationsView"),
});

export const screen: Screen = {
  route,
  title: { en: "Operations & actions", "zh-CN": "操作与审计" },
  nav: { order: 110, icon: ListChecks, keys: "g p", to: "/operations" },
};
