import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { CalendarClock } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { oneOf, text, type Raw } from "@/app/search";

export const tabs = ["messages", "schedules"] as const;

export const route = createRoute({
  getParentRoute: () => root,
  path: "/delayed",
  validateSearch: (raw: Raw) => ({
    tab: oneOf(raw["tab"], tabs),
    topic: text(raw["topic"]),
    where: text(raw["where"]),
    q: text(raw["q"]),
    schedule: text(raw["schedule"]),
  }),
  component: lazyRouteComponent(() => import("./view"), "DelayedView"),
});

export const screen: Screen = {
  route,
  title: { en: "Delayed & schedules", "zh-CN": "延迟与定时" },
  nav: { order: 50, icon: CalendarClock, keys: "g s", to: "/delayed" },
};
