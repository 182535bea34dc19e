import { X } from "lucide-react";
import type { Schemas } from "@/api/client";
import { ended, useOperation } from "@/api/operation";
import { useAct } from "@/api/query";
import { useMay } from "@/api/session";
import { useText } from "@/i18n/text";
import { Badge, type Tone } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Panel } from "@/ui/Field";
import { Show } from "@/ui/States";
import { tell } from "@/ui/tell";
import { messages } from "./messages";

type Operation = Schemas["Operation"];

const tones: Record<Operation["state"], Tone> = { waiting: "info", running: "info", done: "good", cancelled: "paused", failed: "bad" };

/** OperationState is how far an operation is, in a word. */
export function OperationState({ of }: { of: Operation }) {
  const t = useText(messages);
  return <Badge tone={tones[of.state]}>{of.cancelling && !ended(of) ? t("cancelling") : t(of.state)}</Badge>;
}

/** totalOf is how much there is to look at: the first estimate may be too small. */
function totalOf(of: Operation): number {
  return Math.max(of.total, of.scanned);
}

/** Bar draws how much of an operation is done. */
export function Bar({ of }: { of: Operation }) {
  const t = useText(messages);
  const all = Math.max(totalOf(of), 1);
  return <progress aria-label={t("progress")} className="h-2 w-full min-w-16" max={all} value={of.state === "done" ? all : of.scanned} />;
}

/** Progress follows an operation to its end: what was done, what was skipped and why. It can be cancelled. */
export function Progress({ id }: { id: string }) {
  return <Show of={useOperation(id)}>{(operation) => <Outcome of={operation} />}</Show>;
}

/** OperationPanel is the same beside the list that the operation changes. */
export function OperationPanel({ id, title, onClose }: { id: string; title: string; onClose: () => void }) {
  const t = useText(messages);
  return (
    <Panel
      title={title}
      actions={
        <Button look="bare" aria-label={t("close")} onClick={onClose}>
          <X aria-hidden className="size-4" />
        </Button>
      }
    >
      <Progress id={id} />
    </Panel>
  );
}

export function Outcome({ of }: { of: Operation }) {
  const t = useText(messages);
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <OperationState of={of} />
        <span role="status">{t(of.dry_run ? "wouldBe" : "counts", { done: of.done, skipped: of.skipped, scanned: of.scanned, total: totalOf(of) })}</span>
        {of.by && <span className="text-muted">{t("by", { who: of.by })}</span>}
        <Cancel of={of} />
      </div>
      <Bar of={of} />
      <Reasons of={of} />
      <Failure of={of} />
    </div>
  );
}

/** Failure is why an operation has ended before its time. */
export function Failure({ of }: { of: Operation }) {
  return of.problem && <p className="font-mono wrap-anywhere text-bad">{of.problem}</p>;
}

/** Reasons say why messages were skipped. */
export function Reasons({ of }: { of: Operation }) {
  const t = useText(messages);
  const reasons = Object.entries(of.why ?? {});
  if (reasons.length === 0) return null;
  return (
    <ul className="list-inside list-disc text-muted">
      {reasons.map(([reason, count]) => (
        <li key={reason} className="wrap-anywhere">
          {t("whyNot", { count, reason })}
        </li>
      ))}
    </ul>
  );
}

function Cancel({ of }: { of: Operation }) {
  const t = useText(messages);
  const may = useMay();
  const cancel = useAct("post", "/api/v1/operations/{id}/cancel");
  if (ended(of) || of.cancelling || !may("operate")) return null;
  return (
    <Button look="danger" className="ml-auto" disabled={cancel.isPending} onClick={() => cancel.mutate({ path: { id: of.operation } }, tell(t("cancelledNow")))}>
      {t("cancel")}
    </Button>
  );
}
