import type { ReactNode } from "react";
import type { Schemas } from "@/api/client";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { Copy } from "@/ui/Copy";
import { Drawer } from "@/ui/Dialog";
import { JsonTree } from "@/ui/JsonTree";
import { parsed } from "./body";
import { MessageLink } from "./MessageRows";
import { messages } from "./messages";
import { StateBadge } from "./state";

type Message = Schemas["Message"];

/** MessageDrawer shows one message beside the list it is in. */
export function MessageDrawer({ message, onClose }: { message: Message; onClose: () => void }) {
  const t = useText(messages);
  const f = useFormat();
  const error = message.dead?.error ?? message.history?.at(-1)?.error;
  return (
    <Drawer title={message.id ?? ""} open onClose={onClose}>
      <dl className="grid grid-cols-[auto_1fr] items-center gap-x-4 gap-y-1.5">
        <Entry name={t("id")}>
          <MessageLink message={message} /> <Copy text={message.id ?? ""} />
        </Entry>
        <Entry name={t("state")}>
          <StateBadge state={message.state} />
        </Entry>
        {message.group && <Entry name={t("group")}>{message.group}</Entry>}
        {message.key && <Entry name={t("key")}>{message.key}</Entry>}
        {message.attempt ? <Entry name={t("attempt")}>{f.number(message.attempt)}</Entry> : null}
        {message.published_at && <Entry name={t("published")}>{f.time(message.published_at)}</Entry>}
        {message.due_at && <Entry name={t("due")}>{f.time(message.due_at)}</Entry>}
        {error && (
          <Entry name={t("error")}>
            <span className="font-mono text-bad">{error}</span>
          </Entry>
        )}
      </dl>
      <h3 className="pt-4 pb-1 font-semibold">{t("body")}</h3>
      <Body message={message} />
      <h3 className="pt-4 pb-1 font-semibold">{t("headers")}</h3>
      <JsonTree value={message.headers ?? {}} />
    </Drawer>
  );
}

function Entry({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  );
}

function Body({ message }: { message: Message }) {
  const t = useText(messages);
  if (message.hidden) return <p className="text-muted">{t("hidden")}</p>;
  const value = parsed(message.body);
  const raw = message.body ?? message.body_base64 ?? "";
  return (
    <>
      {message.masked && <p className="text-muted">{t("masked")}</p>}
      {value === undefined ? <pre className="font-mono break-all whitespace-pre-wrap">{raw}</pre> : <JsonTree value={value} />}
    </>
  );
}
