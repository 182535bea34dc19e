import type { en } from "./messages.en";

export const zh: Record<keyof typeof en, string> = {
  topic: "主题",
  state: "状态",
  ready: "就绪",
  inflight: "处理中",
  waiting: "待重试",
  delayed: "延迟",
  dead: "死信",
  in: "入/秒",
  out: "出/秒",
  oldest: "最久等待",
  groups: "消费组",
  search: "按名称查找",
  noneTitle: "还没有消息",
  noneText: "第一条消息会创建主题。可以从终端或 Go 程序发布：",
  first: "这里只显示前 {count} 个主题；其他主题可按名称跳转（按 : 键）。",
};
