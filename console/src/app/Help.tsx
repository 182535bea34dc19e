import { useText } from "@/i18n/text";
import { useStore } from "@/lib/store";
import { Dialog } from "@/ui/Dialog";
import { bound } from "./keys";
import { messages } from "./messages";

/** Help shows every key that works now. */
export function Help({ open, onClose }: { open: boolean; onClose: () => void }) {
  const t = useText(messages);
  const keys = useStore(bound);
  const rows = [...keys, { keys: "j k", label: t("rowsMove") }, { keys: "Enter", label: t("rowOpen") }];
  return (
    <Dialog title={t("help")} open={open} onClose={onClose}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-2">
        {rows.map(({ keys: names, label }) => (
          <div key={names} className="contents">
            <dt className="flex gap-1">
              {names.split(" ").map((name) => (
                <kbd key={name} className="min-w-6 rounded border border-line bg-raised px-1.5 text-center font-mono">
                  {name}
                </kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
