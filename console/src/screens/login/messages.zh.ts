import type { en } from "./messages.en";

export const zh: Record<keyof typeof en, string> = {
  title: "登录",
  name: "用户名",
  password: "密码",
  wrong: "用户名或密码不对。",
  onceHint: "还没有密码？服务器的终端显示了一个一次性登录链接；也可以创建用户：",
  sso: "使用单点登录或登录链接",
  over: "会话已结束。请重新登录，本页内容会保留。",
};
