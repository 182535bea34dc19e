import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { BellRing } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { oneOf, text, type Raw } from "@/app/search";

export const tabs = ["alerts", "history", "silences", "rules", "channels", "notifications"] as const;
export const statuses = ["firing", "pending", "resolved"] as const;

export const route = createRoute({
  getParentRoute: () => root,
  path: "/alerts",
  validateSearch: (raw: Raw) => ({
    tab: oneOf(raw["tab"], tabs),
    q: text(raw["q"]),
    status: oneOf(raw["status"], statuses),
    rule: text(raw["rule"]),
    subject: text(raw["subject"]),
    id: text(raw["id"]),
  }),
  component: lazyRouteComponent(() => import("./view"), "AlertsView"),
});

export const screen: Screen = {
  route,
  title: { en: "Alerts & notifications", "zh-CN": "告警与通知" },
  nav: { order: 90, icon: BellRing, keys: "g a", to: "/alerts" },
  scope: "view",
};
