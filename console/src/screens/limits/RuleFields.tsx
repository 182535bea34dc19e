import { useText } from "@/i18n/text";
import { Check, Input } from "@/ui/Input";
import { messages } from "./messages";
import type { Draft } from "./rule";

const penalties = ["after", "block", "factor", "max", "history"] as const;

/** RuleFields are where a rule is typed: how many in which time, and what becomes of who goes on all the same. */
export function RuleFields({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const t = useText(messages);
  const number = { type: "number", min: 0 } as const;
  const set = (patch: Partial<Draft>) => onChange({ ...draft, ...patch });
  return (
    <>
      <Check label={t("field.unlimited")} checked={draft.unlimited} onChange={(e) => set({ unlimited: e.target.checked })} />
      {!draft.unlimited && (
        <>
          <div className="grid gap-3 sm:grid-cols-3">
            <Input label={t("field.limit")} {...number} required value={draft.limit} onChange={(e) => set({ limit: e.target.value })} />
            <Input label={t("field.window")} required value={draft.window} onChange={(e) => set({ window: e.target.value })} />
            <Input label={t("field.burst")} {...number} value={draft.burst} onChange={(e) => set({ burst: e.target.value })} />
          </div>
          <details open={penalties.some((name) => draft[name] !== "")}>
            <summary className="cursor-pointer text-muted">{t("penalty")}</summary>
            <div className="grid gap-3 pt-2 sm:grid-cols-2">
              {penalties.map((name) => (
                <Input key={name} label={t(`field.${name}`)} value={draft[name]} onChange={(e) => set({ [name]: e.target.value })} />
              ))}
            </div>
          </details>
        </>
      )}
    </>
  );
}
