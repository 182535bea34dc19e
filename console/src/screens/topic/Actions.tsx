import { CirclePause, CirclePlay, Send, Trash2 } from "lucide-react";
import { useEffect, useState } from "react";
import type { Schemas } from "@/api/client";
import { ended, useOperation } from "@/api/operation";
import type { Problem } from "@/api/problem";
import { useAct } from "@/api/query";
import { useMay } from "@/api/session";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Dialog";
import { Refused } from "@/ui/States";
import { toast } from "@/ui/Toast";
import { messages } from "./messages";
import { Publish } from "./Publish";

type Open = "purge" | "publish" | undefined;

/** Actions are what can be done with a topic, as far as whoever looks may. */
export function Actions({ topic }: { topic: Schemas["Topic"] }) {
  const t = useText(messages);
  const may = useMay();
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  return (
    <>
      {may("publish", topic.topic) && (
        <Button look="primary" onClick={() => setOpen("publish")}>
          <Send aria-hidden className="size-4" />
          {t("publish")}
        </Button>
      )}
      {may("operate", topic.topic) && (
        <>
          <PauseButton topic={topic} />
          <Button look="danger" onClick={() => setOpen("purge")}>
            <Trash2 aria-hidden className="size-4" />
            {t("purge")}
          </Button>
        </>
      )}
      {open === "purge" && <Purge topic={topic.topic} onClose={close} />}
      {open === "publish" && <Publish topic={topic.topic} onClose={close} />}
    </>
  );
}

function PauseButton({ topic }: { topic: Schemas["Topic"] }) {
  const t = useText(messages);
  const pause = useAct("post", "/api/v1/topics/{topic}/pause");
  const resume = useAct("post", "/api/v1/topics/{topic}/resume");
  const act = topic.paused ? resume : pause;
  const what = topic.paused ? "resume" : "pause";
  const run = () =>
    act.mutate(
      { path: { topic: topic.topic } },
      {
        onSuccess: () => toast(t(topic.paused ? "resumed" : "paused", { topic: topic.topic })),
        onError: (p: Problem) => toast(t("failed", { what: t(what), detail: p.detail }), false),
      },
    );
  const Icon = topic.paused ? CirclePlay : CirclePause;
  return (
    <Button disabled={act.isPending} onClick={run}>
      <Icon aria-hidden className="size-4" />
      {t(what)}
    </Button>
  );
}

/** Purge counts first what it would remove, and takes the name of the topic before it does. */
function Purge({ topic, onClose }: { topic: string; onClose: () => void }) {
  const t = useText(messages);
  const count = useAct("post", "/api/v1/topics/{topic}/purge");
  const purge = useAct("post", "/api/v1/topics/{topic}/purge");
  const { mutate } = count;
  useEffect(() => mutate({ path: { topic }, body: { dry_run: true } }), [mutate, topic]);
  const counted = useOperation(count.data?.operation);
  const result = counted.data && ended(counted.data) ? counted.data : undefined;
  const problem = count.error ?? counted.problem ?? purge.error;
  const run = () =>
    purge.mutate(
      { path: { topic }, body: {} },
      {
        onSuccess: () => {
          toast(t("purging", { topic }));
          onClose();
        },
      },
    );
  return (
    <Confirm title={t("purgeTitle", { topic })} open onClose={onClose} action={t("purge")} typed={topic} busy={!result || purge.isPending} onConfirm={run}>
      {problem ? <Refused problem={problem} /> : result ? t("purgeText", { count: result.done }) : t("purgeCounting")}
    </Confirm>
  );
}
