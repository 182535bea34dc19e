import { useState, type FormEvent } from "react";
import { useAct } from "@/api/query";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Input } from "@/ui/Input";
import { Refused } from "@/ui/States";
import { tell } from "@/ui/tell";
import { messages } from "./messages";

/** Block keeps a key out, for some time or for good. */
export function Block({ onClose }: { onClose: () => void }) {
  const t = useText(messages);
  const [limit, setLimit] = useState("default");
  const [key, setKey] = useState("");
  const [time, setTime] = useState("");
  const [reason, setReason] = useState("");
  const block = useAct("put", "/api/v1/limits/{limit}/keys/{key}/block");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const body = { ...(time && { for: time }), ...(reason && { reason }) };
    block.mutate({ path: { limit, key }, body }, { onSuccess: tell(t("blockedNow", { key }), onClose).onSuccess });
  };
  return (
    <Dialog title={t("block")} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <Input label={t("key")} required value={key} onChange={(e) => setKey(e.target.value)} />
        <Input label={t("limit")} required value={limit} onChange={(e) => setLimit(e.target.value)} />
        <Input label={t("for")} value={time} onChange={(e) => setTime(e.target.value)} />
        <Input label={t("why")} value={reason} onChange={(e) => setReason(e.target.value)} />
        {block.error && <Refused problem={block.error} />}
        <Button type="submit" look="primary" disabled={block.isPending}>
          {t("blockDo")}
        </Button>
      </form>
    </Dialog>
  );
}
