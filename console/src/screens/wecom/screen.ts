import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Headset } from "lucide-react";
import { root } from "@/app/root";
import type { Screen } from "@/app/screen";
import { text, type Raw } from "@/app/search";

export const route = createRoute({
  getParentRoute: () => root,
  path: "/wecom",
  validateSearch: (raw: Raw) => ({ q: text(raw["q"]) }),
  component: lazyRouteComponent(() => import("./view"), "WeComView"),
});

export const screen: Screen = {
  route,
  title: { en: "WeCom", "zh-CN": "企业微信客服" },
  nav: { order: 100, icon: Headset, keys: "g c", to: "/wecom" },
  scope: "view",
  offered: ({ broker }) => broker.wecom,
};
