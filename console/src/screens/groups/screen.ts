import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Users } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { text, type Raw } from "@/app/search";

export const route = createRoute({
  getParentRoute: () => root,
  path: "/groups",
  validateSearch: (raw: Raw) => ({ q: text(raw["q"]), sort: text(raw["sort"]) }),
  component: lazyRouteComponent(() => import("./view"), "GroupsView"),
});

export const screen: Screen = {
  route,
  title: { en: "Groups & lag", "zh-CN": "消费组与积压" },
  nav: { order: 70, icon: Users, keys: "g g", to: "/groups" },
};
