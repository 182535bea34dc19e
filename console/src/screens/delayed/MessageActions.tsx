import { useState, type FormEvent } from "react";
import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useMay } from "@/api/session";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Confirm, Dialog } from "@/ui/Dialog";
import { Input } from "@/ui/Input";
import { Refused } from "@/ui/States";
import { tell } from "@/ui/tell";
import { messages } from "./messages";

/** MessageActions are what can be done with a message that is not due. */
export function MessageActions({ message }: { message: Schemas["Message"] }) {
  const t = useText(messages);
  const may = useMay();
  const [open, setOpen] = useState<"reschedule" | "cancel">();
  const run = useAct("post", "/api/v1/topics/{topic}/messages/{id}/reschedule");
  const { topic, id } = message;
  if (!id || !may("operate", topic)) return null;
  const one = { path: { topic, id }, query: { group: message.group } };
  const close = () => setOpen(undefined);
  return (
    <span className="inline-flex gap-1">
      <Button look="bare" disabled={run.isPending} onClick={() => run.mutate({ ...one, body: {} }, tell(t("ran", { id })))}>
        {t("runNow")}
      </Button>
      <Button look="bare" onClick={() => setOpen("reschedule")}>
        {t("reschedule")}
      </Button>
      <Button look="bare" onClick={() => setOpen("cancel")}>
        {t("cancel")}
      </Button>
      {open === "reschedule" && <Later one={one} onClose={close} />}
      {open === "cancel" && <Remove one={one} onClose={close} />}
    </span>
  );
}

interface One {
  path: { topic: string; id: string };
  query: { group: string | undefined };
}

function Later({ one, onClose }: { one: One; onClose: () => void }) {
  const t = useText(messages);
  const { id } = one.path;
  const [after, setAfter] = useState("1h");
  const move = useAct("post", "/api/v1/topics/{topic}/messages/{id}/reschedule");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    move.mutate({ ...one, body: { after } }, { onSuccess: tell(t("rescheduled", { id, after }), onClose).onSuccess });
  };
  return (
    <Dialog title={t("rescheduleTitle", { id })} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <Input label={t("after")} required value={after} onChange={(e) => setAfter(e.target.value)} />
        {move.error && <Refused problem={move.error} />}
        <Button type="submit" look="primary" disabled={move.isPending}>
          {t("reschedule")}
        </Button>
      </form>
    </Dialog>
  );
}

function Remove({ one, onClose }: { one: One; onClose: () => void }) {
  const t = useText(messages);
  const { id } = one.path;
  const remove = useAct("delete", "/api/v1/topics/{topic}/messages/{id}");
  return (
    <Confirm
      title={t("cancelTitle", { id })}
      open
      onClose={onClose}
      action={t("cancelDo")}
      busy={remove.isPending}
      onConfirm={() => remove.mutate(one, tell(t("cancelled", { id }), onClose))}
    >
      {t("cancelText")}
    </Confirm>
  );
}
