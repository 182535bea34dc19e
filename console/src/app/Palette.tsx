import { useNavigate } from "@tanstack/react-router";
import { useState, type KeyboardEvent } from "react";
import { paused } from "@/api/live";
import { useApi } from "@/api/query";
import { useLanguage, useText } from "@/i18n/text";
import { Dialog } from "@/ui/Dialog";
import { messages } from "./messages";
import type { Screen } from "./screen";

const mostShown = 12;

interface Entry {
  kind: string;
  label: string;
  run: () => void;
}

interface Props {
  open: boolean;
  onClose: () => void;
  screens: Screen[];
}

/** Palette goes to a screen or a topic by a few letters of its name. */
export function Palette({ open, onClose, screens }: Props) {
  const t = useText(messages);
  return (
    <Dialog title={t("palette")} open={open} onClose={onClose}>
      <Choices screens={screens} onClose={onClose} />
    </Dialog>
  );
}

function Choices({ screens, onClose }: Omit<Props, "open">) {
  const t = useText(messages);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries(screens).filter((e) => fits(e.label, typed)).slice(0, mostShown);
  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.run();
  };
  const onKey = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown") setAt(Math.min(at + 1, entries.length - 1));
    else if (e.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (e.key === "Enter") choose(entries[at]);
    else return;
    e.preventDefault();
  };
  return (
    <div>
      <input
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls="palette"
        aria-activedescendant={entries[at] ? `palette-${at}` : undefined}
        aria-label={t("palette")}
        className="mb-2 w-full rounded border border-line bg-ground px-2 py-1"
        value={typed}
        onKeyDown={onKey}
        onChange={(e) => {
          setTyped(e.target.value);
          setAt(0);
        }}
      />
      {entries.length === 0 && <p className="text-muted">{t("paletteNone")}</p>}
      <ul id="palette" role="listbox" aria-label={t("palette")}>
        {entries.map((entry, i) => (
          <li
            key={`${entry.kind} ${entry.label}`}
            id={`palette-${i}`}
            role="option"
            aria-selected={i === at}
            onClick={() => choose(entry)}
            className="flex min-h-8 cursor-pointer items-center justify-between gap-2 rounded px-2 aria-selected:bg-raised"
          >
            <span className="truncate">{entry.label}</span>
            <span className="text-muted">{entry.kind}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function useEntries(screens: Screen[]): Entry[] {
  const t = useText(messages);
  const shown = useLanguage();
  const navigate = useNavigate();
  const topics = useApi("/api/v1/topics", { query: { limit: 200 } });
  return [
    ...screens.flatMap(({ nav, title }) => (nav ? [{ kind: t("screen"), label: title[shown], run: () => void navigate({ to: nav.to }) }] : [])),
    ...(topics.data?.topics ?? []).map(({ topic }) => ({
      kind: t("topic"),
      label: topic,
      run: () => void navigate({ to: "/topics/$topic", params: { topic } }),
    })),
    { kind: t("action"), label: t("pause"), run: () => paused.set(!paused.get()) },
  ];
}

/** fits reports whether the letters stand in a name in this order. */
function fits(name: string, letters: string): boolean {
  let rest = name.toLowerCase();
  return [...letters.toLowerCase()].every((letter) => {
    const found = rest.indexOf(letter);
    rest = rest.slice(found + 1);
    return found >= 0;
  });
}
