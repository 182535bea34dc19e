import { useState, type FormEvent } from "react";
import { useAct } from "@/api/query";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Check, Input, Select } from "@/ui/Input";
import { columnOf } from "@/ui/SearchBox";
import { Refused } from "@/ui/States";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import type { Rule } from "./Rules";
import { severities } from "./state";

/** fields are those that are typed as one text; lists have commas. */
const fields = ["when", "for", "cooldown", "text", "action"] as const;
const lists = ["channels", "topics", "groups"] as const;

type Draft = Record<(typeof fields)[number] | (typeof lists)[number] | "name" | "threshold", string> & {
  severity: (typeof severities)[number];
  disabled: boolean;
};

function draftOf(rule: Rule | undefined): Draft {
  const all = (list: string[] | null | undefined) => list?.join(", ") ?? "";
  return {
    name: rule?.name ?? "",
    when: rule?.when ?? "",
    threshold: rule?.threshold === undefined ? "" : String(rule.threshold),
    for: rule?.for ?? "",
    cooldown: rule?.cooldown ?? "",
    text: rule?.text ?? "",
    action: rule?.action ?? "",
    channels: all(rule?.channels),
    topics: all(rule?.topics),
    groups: all(rule?.groups),
    severity: rule?.severity ?? "warning",
    disabled: rule?.disabled ?? false,
  };
}

/** bodyOf is the rule whole: what is left out of a draft is left out of the rule. */
function bodyOf(draft: Draft, before: Rule | undefined): Omit<Rule, "name" | "kept"> {
  const body: Omit<Rule, "name" | "kept"> = { severity: draft.severity };
  for (const name of fields) if (draft[name]) body[name] = draft[name];
  for (const name of lists) {
    const all = draft[name].split(",").map((x) => x.trim()).filter(Boolean);
    if (all.length > 0) body[name] = all;
  }
  if (draft.threshold) body.threshold = Number(draft.threshold);
  if (draft.disabled) body.disabled = true;
  if (before?.promql) body.promql = before.promql;
  return body;
}

/** RuleForm makes a rule, or changes one: it is kept in the broker, over a configured one of its name. */
export function RuleForm({ of, figures, onClose }: { of?: Rule; figures: string[]; onClose: () => void }) {
  const t = useText(messages);
  const [draft, setDraft] = useState(() => draftOf(of));
  const put = useAct("put", "/api/v1/alert-rules/{rule}");
  const set = (patch: Partial<Draft>) => setDraft({ ...draft, ...patch });
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const { onSuccess } = tell(t("ruleKept", { name: draft.name }), onClose);
    put.mutate({ path: { rule: draft.name }, body: bodyOf(draft, of) }, { onSuccess });
  };
  const column = put.error ? columnOf(put.error.detail) : undefined;
  const text = (name: Exclude<keyof Draft, "severity" | "disabled">, required = false) => (
    <Input label={t(`field.${name}`)} required={required} value={draft[name]} onChange={(e) => set({ [name]: e.target.value })} />
  );
  return (
    <Dialog title={of?.name ?? t("newRule")} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <p className="text-muted">{t("ruleText")}</p>
        {!of && text("name", true)}
        {text("when")}
        {column !== undefined && (
          <p aria-hidden className="-mt-3 overflow-hidden pl-[9px] font-mono whitespace-pre text-bad">
            {`${" ".repeat(column - 1)}^`}
          </p>
        )}
        {put.error && <Refused problem={put.error} />}
        <details>
          <summary className="cursor-pointer text-muted">{t("figures", { count: figures.length })}</summary>
          <p className="font-mono wrap-anywhere">{figures.join(", ")}</p>
        </details>
        <div className="grid gap-3 sm:grid-cols-2">
          <Input label={t("field.threshold")} type="number" step="any" value={draft.threshold} onChange={(e) => set({ threshold: e.target.value })} />
          <Select
            label={t("severity")}
            value={draft.severity}
            choices={severities.map((value) => ({ value, label: t(value) }))}
            onChange={(value) => set({ severity: severities.find((s) => s === value) ?? "warning" })}
          />
          {text("for")}
          {text("cooldown")}
          {text("topics")}
          {text("groups")}
        </div>
        {text("channels")}
        {text("text")}
        {text("action")}
        <Check label={t("disable")} checked={draft.disabled} onChange={(e) => set({ disabled: e.target.checked })} />
        <Button type="submit" look="primary" disabled={put.isPending}>
          {t("keep")}
        </Button>
      </form>
    </Dialog>
  );
}
