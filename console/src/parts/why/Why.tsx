import { useText } from "@/i18n/text";
import type { Why } from "@/lib/why";
import { Badge } from "@/ui/Badge";
import { en } from "./messages.en";
import { zh } from "./messages.zh";

const messages = { en, "zh-CN": zh };

/** WhyBadge is the state of a topic or group in a word. */
export function WhyBadge({ why }: { why: Why }) {
  const t = useText(messages);
  return <Badge tone={why.tone}>{t(why.state)}</Badge>;
}

/** WhySentence says why it is so. */
export function WhySentence({ why }: { why: Why }) {
  const t = useText(messages);
  const said = t(`${why.state}.text`, why.values);
  return <span title={said}>{said}</span>; // a table cuts it
}
