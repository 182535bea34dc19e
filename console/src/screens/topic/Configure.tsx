import { useState, type FormEvent } from "react";
import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useSession } from "@/api/session";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Check, Input } from "@/ui/Input";
import { Refused } from "@/ui/States";
import { tell } from "@/ui/tell";
import { messages } from "./messages";

const bounds = ["max_messages", "max_bytes"] as const;

/** Configure changes the configuration of a topic. What was typed stays if it is refused. */
export function Configure({ topic: { topic, config }, onClose }: { topic: Schemas["Topic"]; onClose: () => void }) {
  const t = useText(messages);
  const keeps = useSession().broker.capabilities.history !== "none";
  const [draft, setDraft] = useState(config);
  const put = useAct("put", "/api/v1/topics/{topic}");
  const set = (patch: Schemas["Config"]) => setDraft({ ...draft, ...patch });
  const number = (name: (typeof bounds)[number] | "keep_most") => (
    <Input key={name} type="number" min={0} label={t(`${name}.field`)} value={draft[name] || ""} onChange={(e) => set({ [name]: Number(e.target.value) })} />
  );
  const submit = (e: FormEvent) => {
    e.preventDefault();
    put.mutate({ path: { topic }, body: draft }, { onSuccess: tell(t("changed", { topic }), onClose).onSuccess });
  };
  return (
    <Dialog title={t("changeTitle", { topic })} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        {bounds.map(number)}
        {keeps && <Input label={t("keep.field")} value={draft.keep ?? ""} onChange={(e) => set({ keep: e.target.value })} />}
        {keeps && number("keep_most")}
        <Check label={t("expired_dead")} checked={draft.expired_dead ?? false} onChange={(e) => set({ expired_dead: e.target.checked })} />
        {put.error && <Refused problem={put.error} />}
        <Button type="submit" look="primary" disabled={put.isPending}>
          {t("change")}
        </Button>
      </form>
    </Dialog>
  );
}
