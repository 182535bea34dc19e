import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { useState, type FormEvent, type ReactNode } from "react";
import { useText } from "@/i18n/text";
import { Button } from "./Button";
import { messages } from "./messages";

const places = {
  middle: "top-[12vh] left-1/2 max-h-[76vh] w-[min(36rem,calc(100vw-1.5rem))] -translate-x-1/2 rounded-lg",
  side: "top-0 right-0 h-dvh w-[min(44rem,100vw)]",
};

interface DialogProps {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
  place?: keyof typeof places;
}

/** Dialog stands over a screen; the focus stays in it, and goes back where it was. */
export function Dialog({ title, open, onClose, children, place = "middle" }: DialogProps) {
  const t = useText(messages);
  return (
    <Radix.Root open={open} onOpenChange={(now) => !now && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/40" />
        <Radix.Content
          aria-describedby={undefined}
          className={`fixed z-50 flex flex-col border border-line bg-surface shadow-xl ${places[place]}`}
        >
          <header className="flex items-center justify-between gap-2 border-b border-line py-2 pr-2 pl-4">
            <Radix.Title className="text-base font-semibold wrap-anywhere">{title}</Radix.Title>
            <Radix.Close asChild>
              <Button look="bare" aria-label={t("close")}>
                <X aria-hidden className="size-4" />
              </Button>
            </Radix.Close>
          </header>
          <div className="overflow-auto p-4">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** Drawer is a dialog at the side, for details beside a list. */
export function Drawer(props: Omit<DialogProps, "place">) {
  return <Dialog {...props} place="side" />;
}

export interface ConfirmProps extends Omit<DialogProps, "place"> {
  /** action is the word on the button. */
  action: string;
  onConfirm: () => void;
  busy?: boolean;
  /** typed has to be typed before the button works, for what cannot be undone. Defaults to nothing. */
  typed?: string;
}

/** Confirm asks before something happens; what cannot be undone takes a word that has to be typed. */
export function Confirm({ action, onConfirm, typed, busy = false, children, ...dialog }: ConfirmProps) {
  const t = useText(messages);
  const [word, setWord] = useState("");
  const ready = !busy && (typed === undefined || word === typed);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (ready) onConfirm();
  };
  return (
    <Dialog {...dialog}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <div>{children}</div>
        {typed !== undefined && (
          <label className="flex flex-col gap-1">
            {t("typeToConfirm", { word: typed })}
            <input
              className="rounded border border-line bg-ground px-2 py-1 font-mono"
              autoComplete="off"
              value={word}
              onChange={(e) => setWord(e.target.value)}
            />
          </label>
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={dialog.onClose}>{t("cancel")}</Button>
          <Button type="submit" look={typed === undefined ? "primary" : "danger"} disabled={!ready}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
