import { useEffect, useState } from "react";
import type { Schemas } from "@/api/client";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Confirm, Dialog } from "@/ui/Dialog";
import { Refused } from "@/ui/States";
import { messages } from "./messages";
import { Failure, Progress, Reasons } from "./Progress";
import { useBulk } from "./useBulk";

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
  const [running, setRunning] = useState<string>();
  const { result, problem, busy, count, run } = useBulk(start);
  // What it acts on is chosen before it is opened: it counts once.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  useEffect(count, []);
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
  const ready = result?.state === "done" && !busy && !problem;
  return (
    <Confirm title={title} open onClose={onClose} action={action} typed={typed} busy={!ready} onConfirm={() => run(setRunning)}>
      {problem ? <Refused problem={problem} /> : result ? <Counted of={result} says={says} /> : <p role="status">{t("counting")}</p>}
    </Confirm>
  );
}

function Counted({ of, says }: { of: Operation; says: (count: number) => string }) {
  return (
    <>
      <p role="status">{says(of.done)}</p>
      <Reasons of={of} />
      <Failure of={of} />
    </>
  );
}
