import { useState } from "react";
import { useText } from "@/i18n/text";
import { Confirm } from "@/ui/Dialog";
import { Input } from "@/ui/Input";
import { messages } from "./messages";

interface Props {
  title: string;
  text: string;
  action: string;
  busy: boolean;
  onConfirm: (reason: string | undefined) => void;
  onClose: () => void;
}

/** Because confirms a change, and takes the reason that the list of changes keeps. */
export function Because({ title, text, action, busy, onConfirm, onClose }: Props) {
  const t = useText(messages);
  const [reason, setReason] = useState("");
  return (
    <Confirm title={title} open onClose={onClose} action={action} busy={busy} onConfirm={() => onConfirm(reason || undefined)}>
      <div className="flex flex-col gap-3">
        <p>{text}</p>
        <Input label={t("why")} value={reason} onChange={(e) => setReason(e.target.value)} />
      </div>
    </Confirm>
  );
}
