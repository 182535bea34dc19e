import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { oneOf, text, type Raw } from "@/app/search";
import { states } from "@/parts/messages/state";

export const tabs = ["charts", "messages", "groups", "dead", "delayed", "config"] as const;
export const spans = ["5m", "24h"] as const;

export const route = createRoute({
  getParentRoute: () => root,
  path: "/topics/$topic",
  validateSearch: (raw: Raw) => ({
    tab: oneOf(raw["tab"], tabs),
    span: oneOf(raw["span"], spans),
    state: oneOf(raw["state"], states),
    where: text(raw["where"]),
  }),
  component: lazyRouteComponent(() => import("./view"), "TopicView"),
});

export const screen: Screen = { route, title: { en: "Topic", "zh-CN": "主题" } };
