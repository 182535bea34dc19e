import { AlertTriangle, CircleCheck, CirclePause, CircleX, Info, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

const tones: Record<Tone, { icon: LucideIcon; colour: string }> = {
  good: { icon: CircleCheck, colour: "text-good" },
  warn: { icon: AlertTriangle, colour: "text-warn" },
  bad: { icon: CircleX, colour: "text-bad" },
  paused: { icon: CirclePause, colour: "text-warn" },
  info: { icon: Info, colour: "text-muted" },
};

export type Tone = "good" | "warn" | "bad" | "paused" | "info";

/** Badge is a status: an icon, a word and a colour, so that none of them is needed. */
export function Badge({ tone, children, icon }: { tone: Tone; children: ReactNode; icon?: LucideIcon }) {
  const Icon = icon ?? tones[tone].icon;
  return (
    <span
      className={`inline-flex items-center gap-1 rounded-full border border-line bg-surface px-2 text-[13px] leading-5 whitespace-nowrap ${tones[tone].colour}`}
    >
      <Icon aria-hidden className="size-3.5 shrink-0" />
      {children}
    </span>
  );
}
