import type { Schemas } from "@/api/client";
import type { Format } from "@/i18n/format";
import type { Text } from "@/i18n/text";
import { en } from "./messages.en";

export type Reason = Schemas["HealthReason"];
type Key = keyof typeof en;

/** subjectOf names what a reason is about. */
export function subjectOf(reason: Reason, t: Text<Key>): string {
  const { topic = "", group = "", instance = "", account = "" } = reason;
  if (group) return t("subject.group", { topic, group });
  if (topic) return t("subject.topic", { topic });
  if (account) return t("subject.account", { account });
  return instance ? t("subject.worker", { instance }) : t("subject.broker");
}

/** sentenceOf is a reason in the language that is shown; one that this page does not know is as the server words it. */
export function sentenceOf(reason: Reason, t: Text<Key>, f: Format): string {
  const beside = (reason.groups ?? []).length > 0;
  const never = reason.code === "wecom_not_pulled" && reason.age === undefined;
  const key: Key = reason.code === "no_consumer" && beside ? "reason.no_consumer_beside" : never ? "reason.wecom_never_pulled" : `reason.${reason.code}`;
  if (!(key in en)) return reason.text;
  return t(key, {
    count: reason.count ?? 0,
    looks: reason.looks ?? 0,
    share: f.percent(reason.share ?? 0),
    rate: f.rate(reason.per_second ?? 0),
    age: f.duration(reason.age ?? 0),
    groups: (reason.groups ?? []).join(", "),
    instance: reason.instance ?? "",
    error: reason.error ?? "",
  });
}
