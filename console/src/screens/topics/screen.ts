import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Layers } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { text, type Raw } from "@/app/search";

export const route = createRoute({
  getParentRoute: () => root,
  path: "/topics",
  validateSearch: (raw: Raw) => ({ q: text(raw["q"]), sort: text(raw["sort"]) }),
  component: lazyRouteComponent(() => import("./view"), "TopicsView"),
});

export const screen: Screen = {
  route,
  title: { en: "Topics", "zh-CN": "主题" },
  nav: { order: 20, icon: Layers, keys: "g t", to: "/topics" },
};
