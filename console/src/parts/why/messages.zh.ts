import type { en } from "./messages.en";

export const zh: Record<keyof typeof en, string> = {
  paused: "已暂停",
  noGroup: "无消费组",
  noConsumer: "无消费者",
  busy: "处理中",
  stuck: "受阻",
  retrying: "待重试",
  delayed: "延迟中",
  held: "未决",
  idle: "空闲",
  "paused.text": "已暂停，{ready} 条就绪消息等待恢复。",
  "noGroup.text": "没有消费组，没有程序消费它。",
  "noConsumer.text": "{ready} 条就绪，无人消费。请检查工作进程是否在运行，并连接到此消息代理。",
  "busy.text": "{ready} 条就绪，{running} 条处理中。",
  "stuck.text": "{ready} 条就绪，但消费者没有领取：可能已静默、被限流，或熔断器已打开。",
  "retrying.text": "没有就绪消息：{waiting} 条等待重试。",
  "delayed.text": "没有到期消息：{delayed} 条延迟中。",
  "held.text": "{held} 条事务半消息尚未决定。",
  "idle.text": "没有等待的消息。",
};
