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
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return (
    <Button look="bare" aria-label={done ? t("copied") : (label ?? t("copy"))} onClick={() => void copy()}>
      {done ? <Check aria-hidden className="size-4" /> : <Icon aria-hidden className="size-4" />}
    </Button>
  );
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
