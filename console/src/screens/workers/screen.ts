import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Cpu } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { text, type Raw } from "@/app/search";

export const route = createRoute({
  getParentRoute: () => root,
  path: "/workers",
  validateSearch: (raw: Raw) => ({ q: text(raw["q"]), sort: text(raw["sort"]), member: text(raw["member"]) }),
  component: lazyRouteComponent(() => import("./view"), "WorkersView"),
});

export const screen: Screen = {
  route,
  title: { en: "Workers", "zh-CN": "工作进程" },
  nav: { order: 60, icon: Cpu, keys: "g w", to: "/workers" },
};
