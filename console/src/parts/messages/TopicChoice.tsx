import { useText } from "@/i18n/text";
import { messages } from "./messages";

interface Props {
  topics: string[];
  value: string | undefined;
  onChange: (topic: string | undefined) => void;
}

/** TopicChoice chooses one topic or all. One of a link that is not there any more is still named. */
export function TopicChoice({ topics, value, onChange }: Props) {
  const t = useText(messages);
  const names = value === undefined || topics.includes(value) ? topics : [value, ...topics];
  return (
    <select
      aria-label={t("topic")}
      className="h-8 max-w-60 rounded border border-line bg-surface px-1"
      value={value ?? ""}
      onChange={(e) => onChange(e.target.value || undefined)}
    >
      <option value="">{t("everyTopic")}</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
