import { useText } from "@/i18n/text";
import { Input, Select } from "@/ui/Input";
import type { Channel } from "./Channels";
import { messages } from "./messages";

/** Destination is one of the names that a channel has, or an address where it has none. */
export function Destination({ channel, value, onChange }: { channel: Channel | undefined; value: string; onChange: (to: string) => void }) {
  const t = useText(messages);
  const names = channel?.destinations ?? [];
  if (names.length === 0) return <Input label={t("to")} required value={value} onChange={(e) => onChange(e.target.value)} />;
  return <Select label={t("to")} value={value} choices={names.map((name) => ({ value: name, label: name }))} onChange={onChange} />;
}
