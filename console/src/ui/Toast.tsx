import { CircleCheck, CircleX, X } from "lucide-react";
import { useText } from "@/i18n/text";
import { Store, useStore } from "@/lib/store";
import { Button } from "./Button";
import { messages } from "./messages";

interface Toast {
  id: number;
  good: boolean;
  text: string;
}

const toasts = new Store<readonly Toast[]>([]);
const shownFor = 6000;
let last = 0;

/** toast tells that something was done. What failed stays until it is closed. */
export function toast(text: string, good = true): void {
  const id = ++last;
  toasts.set([...toasts.get(), { id, good, text }]);
  if (good) setTimeout(() => close(id), shownFor);
}

function close(id: number): void {
  toasts.set(toasts.get().filter((t) => t.id !== id));
}

export function Toasts() {
  const t = useText(messages);
  const shown = useStore(toasts);
  return (
    <div role="status" aria-live="polite" className="fixed right-3 bottom-3 z-50 flex max-w-[min(28rem,calc(100vw-1.5rem))] flex-col gap-2">
      {shown.map(({ id, good, text }) => (
        <div key={id} className="flex items-center gap-2 rounded border border-line bg-surface py-1 pr-1 pl-3 shadow-lg">
          {good ? <CircleCheck aria-hidden className="size-4 shrink-0 text-good" /> : <CircleX aria-hidden className="size-4 shrink-0 text-bad" />}
          <span className="min-w-0 grow break-words">{text}</span>
          <Button look="bare" aria-label={t("close")} onClick={() => close(id)}>
            <X aria-hidden className="size-4" />
          </Button>
        </div>
      ))}
    </div>
  );
}
