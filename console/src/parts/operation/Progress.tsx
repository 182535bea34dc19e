import { X } from "lucide-react";
import type { Schemas } from "@/api/client";
import { ended, useOperation } from "@/api/operation";
import { useAct } from "@/api/query";
import { useText } from "@/i18n/text";
import { Badge, type Tone } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Panel } from "@/ui/Field";
import { Show } from "@/ui/States";
import { messages } from "./messages";

type Operation = Schemas["Operation"];

const tones: Record<Operation["state"], Tone> = { waiting: "info", running: "info", done: "good", cancelled: "warn", failed: "bad" };

/** OperationProgress follows long work until it has ended: how far it is, what was skipped and why. It can be cancelled. */
export function OperationProgress({ id, title, onClose }: { id: string; title: string; onClose: () => void }) {
  const t = useText(messages);
  const loaded = useOperation(id);
  return (
    <Panel
      title={title}
      actions={
        <Button look="bare" aria-label={t("close")} onClick={onClose}>
          <X aria-hidden className="size-4" />
        </Button>
      }
    >
      <Show of={loaded}>{(operation) => <Progress operation={operation} />}</Show>
    </Panel>
  );
}

function Progress({ operation: o }: { operation: Operation }) {
  const t = useText(messages);
  const cancel = useAct("post", "/api/v1/operations/{id}/cancel");
  const over = ended(o);
  const total = Math.max(o.total ?? 0, o.scanned ?? 0, 1);
  const at = o.state === "done" ? total : (o.scanned ?? 0);
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <Badge tone={tones[o.state]}>{t(o.cancelling && !over ? "cancelling" : o.state)}</Badge>
        <span role="status" className="font-medium">
          {t(o.dry_run ? "wouldBe" : "outcome", { done: o.done ?? 0, skipped: o.skipped ?? 0 })}
        </span>
        <span className="text-muted">{t("looked", { scanned: o.scanned ?? 0, total })}</span>
        {o.by && <span className="text-muted">{t("by", { who: o.by })}</span>}
        {!over && (
          <Button className="ml-auto" disabled={cancel.isPending || o.cancelling} onClick={() => cancel.mutate({ path: { id: o.operation } })}>
            {t("cancel")}
          </Button>
        )}
      </div>
      <div role="progressbar" aria-label={t("progress")} aria-valuemin={0} aria-valuemax={total} aria-valuenow={at} className="h-1.5 rounded bg-raised">
        <div className="h-full rounded bg-accent" style={{ width: `${(100 * at) / total}%` }} />
      </div>
      {o.problem && <p className="font-mono wrap-anywhere text-bad">{o.problem}</p>}
      <Skipped why={o.why} />
    </div>
  );
}

/** Skipped says what was left alone, and why. */
export function Skipped({ why }: { why: Operation["why"] }) {
  const t = useText(messages);
  const reasons = Object.entries(why ?? {});
  if (reasons.length === 0) return null;
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-3">
      <dt className="col-span-2 text-muted">{t("why")}</dt>
      {reasons.map(([reason, count]) => (
        <div key={reason} className="contents">
          <dt className="text-right tabular-nums">{count}</dt>
          <dd className="wrap-anywhere">{reason}</dd>
        </div>
      ))}
    </dl>
  );
}
