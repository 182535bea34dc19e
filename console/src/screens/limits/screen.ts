import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { ShieldAlert } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { oneOf, text, type Raw } from "@/app/search";

export const tabs = ["keys", "rules", "check", "breakers", "changes"] as const;
export const kinds = ["blocked", "overridden", "whitelisted"] as const;

export const route = createRoute({
  getParentRoute: () => root,
  path: "/limits",
  validateSearch: (raw: Raw) => ({
    tab: oneOf(raw["tab"], tabs),
    kind: oneOf(raw["kind"], kinds),
    limit: text(raw["limit"]),
    key: text(raw["key"]),
  }),
  component: lazyRouteComponent(() => import("./view"), "LimitsView"),
});

export const screen: Screen = {
  route,
  title: { en: "Limits & breakers", "zh-CN": "限流与熔断" },
  nav: { order: 80, icon: ShieldAlert, keys: "g l", to: "/limits" },
  offered: ({ broker }) => broker.guards,
};
