import { useState, type FormEvent } from "react";
import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { field } from "@/ui/Field";
import { Refused } from "@/ui/States";
import { toast } from "@/ui/Toast";
import { messages } from "./messages";

interface Props {
  topic: string;
  /** like is a message whose body, key, headers and type it begins with. Defaults to an example. */
  like?: Schemas["Message"];
  onClose: () => void;
}

/** Publish sends a message by hand. What was typed stays if it is refused. */
export function Publish({ topic, like, onClose }: Props) {
  const t = useText(messages);
  const [body, setBody] = useState(like?.body ?? '{\n  "id": 1\n}');
  const [key, setKey] = useState(like?.key ?? "");
  const [delay, setDelay] = useState("");
  const publish = useAct("post", "/api/v1/topics/{topic}/messages");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const headers = Object.fromEntries(Object.entries(like?.headers ?? {}).filter(([name]) => !name.startsWith("ferry")));
    const message = { body, headers, ...(key && { key }), ...(delay && { delay }), ...(like?.content_type && { content_type: like.content_type }) };
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
        {publish.error && <Refused problem={publish.error} />}
        <Button type="submit" look="primary" disabled={publish.isPending}>
          {t("publish")}
        </Button>
      </form>
    </Dialog>
  );
}
