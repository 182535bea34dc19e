import { diff, type Change } from "@/lib/diff";
import { useText } from "@/i18n/text";
import { messages } from "./messages";

const looks: Record<Change["kind"], { sign: string; colour: string }> = {
  same: { sign: " ", colour: "text-muted" },
  old: { sign: "−", colour: "bg-raised text-bad" },
  new: { sign: "+", colour: "bg-raised text-good" },
};

/** Diff shows what an edit changes, with signs, so that no colour is needed. */
export function Diff({ label, before, after }: { label: string; before: string; after: string }) {
  const t = useText(messages);
  if (before === after) return <p className="text-muted">{t("diff.none")}</p>;
  return (
    <div role="region" aria-label={label} tabIndex={0} className="max-h-60 overflow-auto rounded border border-line bg-ground font-mono">
      {diff(before, after).map(({ kind, line }, i) => (
        <div key={i} className={`flex gap-2 px-2 whitespace-pre ${looks[kind].colour}`}>
          <span className="select-none">{looks[kind].sign}</span>
          {kind !== "same" && <span className="sr-only">{t(`diff.${kind}`)}</span>}
          <span>{line}</span>
        </div>
      ))}
    </div>
  );
}
