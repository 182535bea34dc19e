import { useState, type FormEvent } from "react";
import { useAct } from "@/api/query";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorState } from "@/ui/States";
import { toast } from "@/ui/Toast";
import { messages } from "./messages";

const field = "w-full rounded border border-line bg-ground px-2 py-1 font-mono text-text";

/** Publish sends a message by hand. What was typed stays if it is refused. */
export function Publish({ topic, onClose }: { topic: string; onClose: () => void }) {
  const t = useText(messages);
  const [body, setBody] = useState('{\n  "id": 1\n}');
  const [key, setKey] = useState("");
  const [delay, setDelay] = useState("");
  const publish = useAct("post", "/api/v1/topics/{topic}/messages");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const message = { body, ...(key && { key }), ...(delay && { delay }) };
    publish.mutate(
      { path: { topic }, body: message },
      {
        onSuccess: ({ id }) => {
          toast(t("published", { id }));
          onClose();
        },
      },
    );
  };
  return (
    <Dialog title={t("publishTitle", { topic })} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <label>
          {t("body")}
          <textarea className={field} rows={8} spellCheck={false} value={body} onChange={(e) => setBody(e.target.value)} />
        </label>
        <label>
          {t("key")}
          <input className={field} value={key} onChange={(e) => setKey(e.target.value)} />
        </label>
        <label>
          {t("delay")}
          <input className={field} value={delay} onChange={(e) => setDelay(e.target.value)} />
        </label>
        {publish.error && <ErrorState problem={publish.error} />}
        <Button type="submit" look="primary" disabled={publish.isPending}>
          {t("publish")}
        </Button>
      </form>
    </Dialog>
  );
}
