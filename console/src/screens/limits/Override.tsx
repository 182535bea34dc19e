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

/** Override gives a key a rule of its own until a time, for a reason. */
export function Override({ of, onClose }: { of?: Schemas["LimitKey"]; onClose: () => void }) {
  const t = useText(messages);
  const [limit, setLimit] = useState(of?.limit ?? "default");
  const [key, setKey] = useState(of?.key ?? "");
  const [draft, setDraft] = useState(() => draftOf(of?.override?.rule ?? of?.rule));
  const [time, setTime] = useState("24h");
  const [reason, setReason] = useState("");
  const override = useAct("put", "/api/v1/limits/{limit}/keys/{key}/override");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const body = { rule: ruleOf(draft), for: time, ...(reason && { reason }) };
    override.mutate({ path: { limit, key }, body }, { onSuccess: tell(t("overriddenNow", { key }), onClose).onSuccess });
  };
  return (
    <Dialog title={t("override")} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <div className="grid gap-3 sm:grid-cols-2">
          <Input label={t("key")} required value={key} readOnly={of !== undefined} onChange={(e) => setKey(e.target.value)} />
          <Input label={t("limit")} required value={limit} readOnly={of !== undefined} onChange={(e) => setLimit(e.target.value)} />
        </div>
        <RuleFields draft={draft} onChange={setDraft} />
        <Input label={t("overrideFor")} required value={time} onChange={(e) => setTime(e.target.value)} />
        <Input label={t("why")} value={reason} onChange={(e) => setReason(e.target.value)} />
        {override.error && <Refused problem={override.error} />}
        <Button type="submit" look="primary" disabled={override.isPending}>
          {t("overrideDo")}
        </Button>
      </form>
    </Dialog>
  );
}
