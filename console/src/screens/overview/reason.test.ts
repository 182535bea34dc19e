import { expect, test } from "vitest";
import { formats } from "@/i18n/format";
import { fill, type Values } from "@/i18n/fill";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { sentenceOf, subjectOf, type Reason } from "./reason";

const inLanguage = (language: keyof typeof messages) => (key: keyof typeof en, values: Values = {}) => fill(messages[language][key], values, language);

const reason: Reason = { status: "degraded", code: "no_consumer", subject: "group default of topic orders", text: "as the server says", topic: "orders", group: "default", count: 3 };

test("a reason is worded in the language that is shown", () => {
  expect(subjectOf(reason, inLanguage("zh-CN"))).toBe("主题 orders 的消费组 default");
  expect(sentenceOf(reason, inLanguage("zh-CN"), formats("zh-CN"))).toBe("3 条消息在等待，没有消费者");
  expect(sentenceOf({ ...reason, groups: ["billing"] }, inLanguage("en"), formats("en"))).toContain("consumers use billing");
  expect(sentenceOf({ ...reason, code: "memory_used", share: 0.834 }, inLanguage("en"), formats("en"))).toBe("83% of its memory is used");
});

test("an account whose pulls have stopped is named", () => {
  const stopped: Reason = { status: "degraded", code: "wecom_not_pulled", subject: "account kf1 of WeCom", text: "it was never pulled", account: "kf1" };
  expect(subjectOf(stopped, inLanguage("en"))).toBe("Account kf1 of WeCom");
  expect(sentenceOf(stopped, inLanguage("en"), formats("en"))).toBe("it was never pulled");
  expect(sentenceOf({ ...stopped, age: "6m0s" }, inLanguage("en"), formats("en"))).toContain("last pulled 6m ago");
});

test("a reason of a newer server is as the server words it", () => {
  expect(sentenceOf({ ...reason, code: "brand_new" as Reason["code"] }, inLanguage("zh-CN"), formats("zh-CN"))).toBe("as the server says");
});
