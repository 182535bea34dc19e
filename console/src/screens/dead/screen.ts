import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Skull } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { oneOf, text, type Raw } from "@/app/search";

export const groupings = ["fingerprint", "reason", "topic", "group", "key", "day"] as const;

export const route = createRoute({
  getParentRoute: () => root,
  path: "/dead",
  validateSearch: (raw: Raw) => ({
    q: text(raw["q"]),
    topic: text(raw["topic"]),
    group: text(raw["group"]),
    state: oneOf(raw["state"], ["invalid"]),
    kind: text(raw["kind"]),
    by: oneOf(raw["by"], groupings),
    op: text(raw["op"]),
  }),
  component: lazyRouteComponent(() => import("./view"), "DeadView"),
});

export const screen: Screen = {
  route,
  title: { en: "Dead letters", "zh-CN": "死信" },
  nav: { order: 40, icon: Skull, keys: "g d", to: "/dead" },
};
