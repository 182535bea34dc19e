import { Check, Copy as Icon } from "lucide-react";
import { useState } from "react";
import { useText } from "@/i18n/text";
import { Button } from "./Button";
import { messages } from "./messages";

/** Copy puts a text on the clipboard. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const t = useText(messages);
  const [done, setDone] = useState(false);
  const copy = async () => {
    if (!(await write(text))) return;
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return (
    <Button look="bare" aria-label={done ? t("copied") : (label ?? t("copy"))} onClick={() => void copy()}>
      {done ? <Check aria-hidden className="size-4" /> : <Icon aria-hidden className="size-4" />}
    </Button>
  );
}

/** write puts a text on the clipboard. Over plain HTTP from another machine a browser has none, but still copies what is selected. */
async function write(text: string): Promise<boolean> {
  const { clipboard } = navigator as { clipboard?: Clipboard };
  if (clipboard) return clipboard.writeText(text).then(() => true, () => false);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sr-only";
  const focused = document.activeElement;
  (focused?.closest("[role=dialog]") ?? document.body).append(area); // a dialog takes the focus away from everything beside it
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}

/** Command shows what to type in a terminal, and copies it. */
export function Command({ text }: { text: string }) {
  return (
    <div className="flex items-center gap-1 rounded border border-line bg-ground py-0.5 pr-0.5 pl-3 text-left">
      <code className="min-w-0 grow overflow-x-auto whitespace-nowrap" tabIndex={0}>
        {text}
      </code>
      <Copy text={text} />
    </div>
  );
}
