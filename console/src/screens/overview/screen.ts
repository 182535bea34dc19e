import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Gauge } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { oneOf, type Raw } from "@/app/search";

export const spans = ["5m", "24h"] as const;

export const route = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: (raw: Raw) => ({ span: oneOf(raw["span"], spans) }),
  component: lazyRouteComponent(() => import("./view"), "OverviewView"),
});

export const screen: Screen = {
  route,
  title: { en: "Overview", "zh-CN": "概览" },
  nav: { order: 10, icon: Gauge, keys: "g o", to: "/" },
};
