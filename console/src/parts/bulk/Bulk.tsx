import { useEffect, useState } from "react";
import type { Schemas } from "@/api/client";
import { ended, useOperation } from "@/api/operation";
import { Problem } from "@/api/problem";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Confirm, Dialog } from "@/ui/Dialog";
import { ErrorState } from "@/ui/States";
import { messages } from "./messages";
import { Progress, Reasons } from "./Progress";

type Operation = Schemas["Operation"];

interface Props {
  title: string;
  /** action is the word on the button. */
  action: string;
  /** typed is what has to be typed. */
  typed: string;
  /** says tells what happens to so many messages. */
  says: (count: number) => string;
  /** start submits the operation, or with dry the one that only counts. */
  start: (dry: boolean) => Promise<Operation>;
  onClose: () => void;
}

/** Bulk counts what an operation would do, takes a typed word, and follows it to its end. */
export function Bulk({ title, action, typed, says, start, onClose }: Props) {
  const t = useText(messages);
  const [count, setCount] = useState<string>();
  const [running, setRunning] = useState<string>();
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const submit = (dry: boolean) => {
    setBusy(true);
    start(dry)
      .then(({ operation }) => (dry ? setCount(operation) : setRunning(operation)))
      .catch((p: unknown) => setProblem(p instanceof Problem ? p : new Problem(0, "unknown", String(p))))
      .finally(() => setBusy(false));
  };
  // What it acts on is chosen before it is opened: it counts once.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  useEffect(() => submit(true), []);
  const counted = useOperation(count);
  const result = counted.data && ended(counted.data) ? counted.data : undefined;
  if (running) {
    return (
      <Dialog title={title} open onClose={onClose}>
        <div className="flex flex-col gap-4">
          <Progress id={running} />
          <Button className="self-end" onClick={onClose}>
            {t("close")}
          </Button>
        </div>
      </Dialog>
    );
  }
  const wrong = problem ?? counted.problem;
  const ready = result?.state === "done" && !busy && !problem;
  return (
    <Confirm title={title} open onClose={onClose} action={action} typed={typed} busy={!ready} onConfirm={() => submit(false)}>
      {wrong ? <ErrorState problem={wrong} /> : result ? <Counted of={result} says={says} /> : <p role="status">{t("counting")}</p>}
    </Confirm>
  );
}

function Counted({ of, says }: { of: Operation; says: (count: number) => string }) {
  return (
    <>
      <p role="status">{says(of.done)}</p>
      <Reasons of={of} />
      {of.problem && <p className="font-mono wrap-anywhere text-bad">{of.problem}</p>}
    </>
  );
}
