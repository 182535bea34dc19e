import { Confirm, type ConfirmProps } from "@/ui/Dialog";
import { tell } from "@/ui/tell";

interface Props extends Omit<ConfirmProps, "open" | "onConfirm"> {
  /** act does it, with the callbacks that tell what became of it. */
  act: (after: ReturnType<typeof tell>) => void;
  /** done is told when it is done; then the dialog closes. */
  done: string;
}

/** ConfirmAct asks, acts, and tells what became of it. */
export function ConfirmAct({ act, done, ...confirm }: Props) {
  return <Confirm {...confirm} open onConfirm={() => act(tell(done, confirm.onClose))} />;
}
