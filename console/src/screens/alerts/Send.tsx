import { useState, type FormEvent } from "react";
import { useAct, useApi } from "@/api/query";
import { useText } from "@/i18n/text";
import { seconds } from "@/lib/duration";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { field } from "@/ui/Field";
import { Input, Select } from "@/ui/Input";
import { Refused, Show } from "@/ui/States";
import { NoChannels, type Channel } from "./Channels";
import { Destination } from "./Destination";
import { messages } from "./messages";

/** Send queues a notification for one destination, now or later. */
export function Send({ onClose, onSent }: { onClose: () => void; onSent: (id: string) => void }) {
  const t = useText(messages);
  const channels = useApi("/api/v1/channels", {});
  const sent = (id: string) => {
    onSent(id);
    onClose();
  };
  return (
    <Dialog title={t("sendNew")} open onClose={onClose}>
      <Show of={channels}>{({ channels: all }) => (all && all.length > 0 ? <Form channels={all} onSent={sent} /> : <NoChannels />)}</Show>
    </Dialog>
  );
}

function Form({ channels, onSent }: { channels: Channel[]; onSent: (id: string) => void }) {
  const t = useText(messages);
  const [name, setName] = useState(channels[0]?.name ?? "");
  const channel = channels.find((c) => c.name === name);
  const [to, setTo] = useState(channel?.destinations?.[0] ?? "");
  const [title, setTitle] = useState("");
  const [body, setBody] = useState("");
  const [after, setAfter] = useState("");
  const send = useAct("post", "/api/v1/notifications");
  const choose = (next: string) => {
    setName(next);
    setTo(channels.find((c) => c.name === next)?.destinations?.[0] ?? "");
  };
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const at = after && { at: new Date(Date.now() + seconds(after) * 1000).toISOString() };
    send.mutate({ body: { title, body, targets: [{ channel: name, to }], ...at } }, { onSuccess: ({ id }) => onSent(id) });
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <Select label={t("channel")} value={name} choices={channels.map((c) => ({ value: c.name, label: c.name }))} onChange={choose} />
      <Destination channel={channel} value={to} onChange={setTo} />
      <Input label={t("title")} required value={title} onChange={(e) => setTitle(e.target.value)} />
      <label className="flex flex-col">
        {t("body")}
        <textarea className={field} rows={4} value={body} onChange={(e) => setBody(e.target.value)} />
      </label>
      <Input label={t("after")} pattern="(\d+(\.\d+)?(h|m|s|ms))+" value={after} onChange={(e) => setAfter(e.target.value)} />
      {send.error && <Refused problem={send.error} />}
      <Button type="submit" look="primary" disabled={send.isPending}>
        {t("send")}
      </Button>
    </form>
  );
}
