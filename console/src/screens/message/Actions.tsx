import { Pencil, Play, RotateCcw, Send, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAct } from "@/api/query";
import { useMay } from "@/api/session";
import { useKeys } from "@/app/keys";
import { useText } from "@/i18n/text";
import { Publish } from "@/screens/topic/Publish";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Dialog";
import { toast } from "@/ui/Toast";
import { EditReplay } from "./EditReplay";
import { messages } from "./messages";

type Message = Schemas["Message"];

const removable = ["delayed", "held", "ready", "waiting"];

/** Actions are what can be done with a message in its state, as far as whoever looks may. */
export function Actions({ message }: { message: Message }) {
  const t = useText(messages);
  const may = useMay();
  const [again, setAgain] = useState(false);
  const whole = !message.hidden && !message.masked && message.body !== undefined;
  return (
    <>
      {may("publish", message.topic) && whole && (
        <Button onClick={() => setAgain(true)}>
          <Send aria-hidden className="size-4" />
          {t("publishAgain")}
        </Button>
      )}
      {may("operate", message.topic) && (message.state === "dead" ? <DeadActions message={message} whole={whole} /> : <WaitingActions message={message} />)}
      {again && <Publish topic={message.topic} like={message} onClose={() => setAgain(false)} />}
    </>
  );
}

/** useTold tells what came of an action. */
function useTold() {
  const t = useText(messages);
  return (done: string) => ({
    onSuccess: () => toast(done),
    onError: (p: Problem) => toast(t("refused", { detail: p.detail }), false),
  });
}

function DeadActions({ message, whole }: { message: Message; whole: boolean }) {
  const t = useText(messages);
  const told = useTold();
  const [open, setOpen] = useState<"edit" | "remove">();
  const replay = useAct("post", "/api/v1/dead/{topic}/{group}/{id}/replay");
  const remove = useAct("delete", "/api/v1/dead/{topic}/{group}/{id}");
  const path = { topic: message.topic, group: message.group ?? "", id: message.id ?? "" };
  const retry = () => replay.mutate({ path, body: {} }, told(t("replayed")));
  useKeys([{ keys: "r", label: t("retry"), run: retry }, ...(whole ? [{ keys: "e", label: t("edit"), run: () => setOpen("edit") }] : [])]);
  return (
    <>
      <Button look="primary" disabled={replay.isPending} onClick={retry}>
        <RotateCcw aria-hidden className="size-4" />
        {t("retry")}
      </Button>
      {whole && (
        <Button onClick={() => setOpen("edit")}>
          <Pencil aria-hidden className="size-4" />
          {t("edit")}
        </Button>
      )}
      <Button look="danger" onClick={() => setOpen("remove")}>
        <Trash2 aria-hidden className="size-4" />
        {t("remove")}
      </Button>
      {open === "edit" && <EditReplay message={message} onClose={() => setOpen(undefined)} />}
      {open === "remove" && (
        <Confirm
          title={t("remove")}
          open
          onClose={() => setOpen(undefined)}
          action={t("remove")}
          typed={t("removeWord")}
          busy={remove.isPending}
          onConfirm={() => {
            remove.mutate({ path }, told(t("removed")));
            setOpen(undefined);
          }}
        >
          {t("removeText")}
        </Confirm>
      )}
    </>
  );
}

function WaitingActions({ message }: { message: Message }) {
  const t = useText(messages);
  const told = useTold();
  const [asking, setAsking] = useState(false);
  const run = useAct("post", "/api/v1/topics/{topic}/messages/{id}/reschedule");
  const cancel = useAct("delete", "/api/v1/topics/{topic}/messages/{id}");
  const input = { path: { topic: message.topic, id: message.id ?? "" }, query: message.group ? { group: message.group } : {} };
  return (
    <>
      {(message.state === "delayed" || message.state === "waiting") && (
        <Button look="primary" disabled={run.isPending} onClick={() => run.mutate({ ...input, body: {} }, told(t("runs")))}>
          <Play aria-hidden className="size-4" />
          {t("runNow")}
        </Button>
      )}
      {removable.includes(message.state ?? "") && (
        <Button look="danger" onClick={() => setAsking(true)}>
          <Trash2 aria-hidden className="size-4" />
          {t("cancel")}
        </Button>
      )}
      {asking && (
        <Confirm
          title={t("cancel")}
          open
          onClose={() => setAsking(false)}
          action={t("cancel")}
          busy={cancel.isPending}
          onConfirm={() => {
            cancel.mutate(input, told(t("cancelled")));
            setAsking(false);
          }}
        >
          {t("cancelText")}
        </Confirm>
      )}
    </>
  );
}
