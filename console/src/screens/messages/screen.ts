import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Mails } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { oneOf, text, type Raw } from "@/app/search";
import { states } from "@/parts/messages/state";

export const route = createRoute({
  getParentRoute: () => root,
  path: "/messages",
  validateSearch: (raw: Raw) => ({
    q: text(raw["q"]),
    topic: text(raw["topic"]),
    state: oneOf(raw["state"], states),
    tail: oneOf(raw["tail"], ["yes"]),
  }),
  component: lazyRouteComponent(() => import("./view"), "MessagesView"),
});

export const screen: Screen = {
  route,
  title: { en: "Messages", "zh-CN": "消息" },
  nav: { order: 30, icon: Mails, keys: "g m", to: "/messages" },
};
