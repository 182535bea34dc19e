import type { en } from "./messages.en";

export const zh: Record<keyof typeof en, string> = {
  waiting: "等待执行",
  running: "执行中",
  done: "已完成",
  cancelled: "已取消",
  failed: "失败",
  cancelling: "正在取消",
  progress: "进度",
  looked: "已查看 {scanned} / 约 {total}",
  outcome: "已处理 {done} 条，跳过 {skipped} 条",
  wouldBe: "将处理 {done} 条，跳过 {skipped} 条",
  why: "跳过的原因",
  cancel: "取消",
  close: "关闭",
  by: "由 {who} 发起",
};
