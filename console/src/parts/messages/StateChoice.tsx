import { useText } from "@/i18n/text";
import { messages } from "./messages";
import { states, type State } from "./state";

/** StateChoice chooses the state of the messages that are listed. */
export function StateChoice({ value, onChange }: { value: State | undefined; onChange: (state: State | undefined) => void }) {
  const t = useText(messages);
  return (
    <select
      aria-label={t("state")}
      className="h-8 self-start rounded border border-line bg-surface px-1"
      value={value ?? ""}
      onChange={(e) => onChange(states.find((s) => s === e.target.value))}
    >
      <option value="">{t("anyState")}</option>
      {states.map((s) => (
        <option key={s} value={s}>
          {t(s)}
        </option>
      ))}
    </select>
  );
}
