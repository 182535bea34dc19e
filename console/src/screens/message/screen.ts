import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { oneOf, text, type Raw } from "@/app/search";

export const forms = ["tree", "raw", "hex"] as const;
export const languages = ["cli", "curl", "go"] as const;

export const route = createRoute({
  getParentRoute: () => root,
  path: "/messages/$topic/$id",
  validateSearch: (raw: Raw) => ({
    group: text(raw["group"]),
    body: oneOf(raw["body"], forms),
    as: oneOf(raw["as"], languages),
  }),
  component: lazyRouteComponent(() => import("./view"), "MessageView"),
});

export const screen: Screen = { route, title: { en: "Message", "zh-CN": "消息" } };
