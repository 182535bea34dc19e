import { useState, type FormEvent } from "react";
import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Input } from "@/ui/Input";
import { Refused } from "@/ui/States";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import { draftOf, ruleOf } from "./rule";
import { RuleFields } from "./RuleFields";

/** SetRule gives a limit, or a group of its keys, another rule in every process. */
export function SetRule({ of, onClose }: { of?: Schemas["LimitRule"]; onClose: () => void }) {
  const t = useText(messages);
  const [limit, setLimit] = useState(of?.limit ?? "");
  const [group, setGroup] = useState(of?.group ?? "");
  const [draft, setDraft] = useState(() => draftOf(of?.rule));
  const [reason, setReason] = useState("");
  const set = useAct("put", "/api/v1/limits/{limit}/rule");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const body = { rule: ruleOf(draft), ...(reason && { reason }) };
    set.mutate({ path: { limit }, query: { group }, body }, { onSuccess: tell(t("ruleSet", { limit }), onClose).onSuccess });
  };
  return (
    <Dialog title={t("setRule")} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <p className="text-muted">{t("setRuleText")}</p>
        <div className="grid gap-3 sm:grid-cols-2">
          <Input label={t("limit")} required value={limit} readOnly={of !== undefined} onChange={(e) => setLimit(e.target.value)} />
          <Input label={t("groupOf")} value={group} readOnly={of !== undefined} onChange={(e) => setGroup(e.target.value)} />
        </div>
        <RuleFields draft={draft} onChange={setDraft} />
        <Input label={t("why")} value={reason} onChange={(e) => setReason(e.target.value)} />
        {set.error && <Refused problem={set.error} />}
        <Button type="submit" look="primary" disabled={set.isPending}>
          {t("setRuleDo")}
        </Button>
      </form>
    </Dialog>
  );
}
