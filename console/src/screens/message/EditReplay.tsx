import { useState, type FormEvent } from "react";
import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useText } from "@/i18n/text";
import { parsed } from "@/parts/messages/body";
import { Button } from "@/ui/Button";
import { Drawer } from "@/ui/Dialog";
import { Diff } from "@/ui/Diff";
import { field } from "@/ui/Field";
import { Refused } from "@/ui/States";
import { toast } from "@/ui/Toast";
import { changed, read, written } from "./headers";
import { messages } from "./messages";

type Message = Schemas["Message"];

/** pretty writes JSON on lines of their own, so that an edit and its difference can be read. Other texts stay as they are. */
function pretty(body: string): string {
  const value = parsed(body);
  return value !== null && typeof value === "object" ? JSON.stringify(value, undefined, 2) : body;
}

/** EditReplay mends a dead letter and brings it back to work. It shows what it changes; what was typed stays if it is refused. */
export function EditReplay({ message, onClose }: { message: Message; onClose: () => void }) {
  const t = useText(messages);
  const original = pretty(message.body ?? "");
  const own = Object.fromEntries(Object.entries(message.headers ?? {}).filter(([name]) => !name.startsWith("ferry")));
  const [body, setBody] = useState(original);
  const [headers, setHeaders] = useState(written(own));
  const [to, setTo] = useState("");
  const replay = useAct("post", "/api/v1/dead/{topic}/{group}/{id}/replay");
  const edits = changed(own, read(headers));
  const broken = parsed(message.body) !== undefined && parsed(body) === undefined;
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const edit = { ...(body !== original && { body }), ...(Object.keys(edits).length > 0 && { headers: edits }) };
    replay.mutate(
      {
        path: { topic: message.topic, group: message.group ?? "", id: message.id ?? "" },
        body: { ...(Object.keys(edit).length > 0 && { edit }), ...(to && { to }) },
      },
      {
        onSuccess: () => {
          toast(t(to ? "moved" : "replayed", { topic: to }));
          onClose();
        },
      },
    );
  };
  return (
    <Drawer title={t("edit")} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <label>
          {t("body")}
          <textarea className={field} rows={12} spellCheck={false} value={body} onChange={(e) => setBody(e.target.value)} />
        </label>
        {broken && (
          <p role="status" className="text-warn">
            {t("broken")}
          </p>
        )}
        <label>
          {t("headerLines")}
          <textarea className={field} rows={3} spellCheck={false} value={headers} onChange={(e) => setHeaders(e.target.value)} />
        </label>
        <label>
          {t("to")}
          <input className={field} value={to} onChange={(e) => setTo(e.target.value.trim())} />
        </label>
        <section className="flex flex-col gap-1">
          <h3 className="font-semibold">{t("difference")}</h3>
          <Diff label={t("difference")} before={`${original}\n${written(own)}`} after={`${body}\n${written(read(headers))}`} />
        </section>
        {replay.error && <Refused problem={replay.error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("close")}</Button>
          <Button type="submit" look="primary" disabled={replay.isPending}>
            {t("replay")}
          </Button>
        </div>
      </form>
    </Drawer>
  );
}
