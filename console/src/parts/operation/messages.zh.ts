import type { en } from "./messages.en";

export const zh: Record<keyof typeof en, string> = {
  waiting: "等待中",
  running: "进行中",
  done: "已完成",
  cancelled: "已取消",
  failed: "失败",
  cancelling: "正在取消",
  cancel: "取消操作",
  cancelledNow: "操作即将结束；已完成的部分不会撤销。",
  progress: "进度",
  counts: "完成 {done}，跳过 {skipped}，已查看 {scanned} / {total}",
  wouldBe: "将处理 {done}，跳过 {skipped}，已查看 {scanned} / {total}",
  counting: "正在统计影响范围…",
  whyNot: "跳过 {count} 条：{reason}",
  by: "由 {who} 发起",
  close: "关闭",
};
