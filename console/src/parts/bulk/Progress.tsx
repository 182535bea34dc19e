import type { Schemas } from "@/api/client";
import { ended, useOperation } from "@/api/operation";
import { useAct } from "@/api/query";
import { useMay } from "@/api/session";
import { useText } from "@/i18n/text";
import { Badge, type Tone } from "@/ui/Badge";
import { Button } from "@/ui/Button";
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

/** Bar draws how much of an operation is done. */
export function Bar({ of }: { of: Operation }) {
  const t = useText(messages);
  const all = Math.max(of.total, of.scanned, 1);
  const now = of.state === "done" ? all : of.scanned;
  return <progress aria-label={t("progress")} className="h-2 w-full min-w-16 accent-accent" max={all} value={now} />;
}

/** Progress follows an operation to its end: what was done, what was skipped and why. It can be cancelled. */
export function Progress({ id }: { id: string }) {
  return <Show of={useOperation(id)}>{(operation) => <Outcome of={operation} />}</Show>;
}

export function Outcome({ of }: { of: Operation }) {
  const t = useText(messages);
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-2">
        <OperationState of={of} />
        {of.dry_run && <span className="text-muted">{t("dryRun")}</span>}
        <Cancel of={of} />
      </div>
      <Bar of={of} />
      <p role="status">{t("counts", { done: of.done, skipped: of.skipped, scanned: of.scanned, total: Math.max(of.total, of.scanned) })}</p>
      <Reasons of={of} />
      {of.problem && <p className="font-mono wrap-anywhere text-bad">{of.problem}</p>}
    </div>
  );
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
    <Button look="danger" disabled={cancel.isPending} onClick={() => cancel.mutate({ path: { id: of.operation } }, tell(t("cancelledNow")))}>
      {t("cancel")}
    </Button>
  );
}
