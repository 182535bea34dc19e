import type { Schemas } from "@/api/client";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { seconds } from "@/lib/duration";
import { Badge, type Tone } from "@/ui/Badge";
import { messages } from "./messages";

const tones = {
  ok: "good",
  idle: "info",
  quiet: "paused",
  starting: "info",
  reconnecting: "warn",
  stopping: "paused",
  stopped: "bad",
} satisfies Record<string, Tone>;

const longSilence = 15; // seconds; a beat is five

/** Health is how a process fares. One that is not heard of any more may do anything. */
export function Health({ member }: { member: Schemas["Member"] }) {
  const t = useText(messages);
  const f = useFormat();
  if (seconds(member.silence) > longSilence) return <Badge tone="warn">{t("state.stale", { silence: f.duration(member.silence) })}</Badge>;
  return <StateOf state={member.health} />;
}

/** StateOf names a state; one that is not known here stands as it came. */
export function StateOf({ state }: { state: string }) {
  const t = useText(messages);
  const known = Object.keys(tones).find((k): k is keyof typeof tones => k === state);
  return <Badge tone={known ? tones[known] : "info"}>{known ? t(`state.${known}`) : state}</Badge>;
}

/** totals sums up the workers of a process. */
export function totals(member: Schemas["Member"]) {
  const workers = member.workers ?? [];
  const handlers = workers.flatMap((w) => w.handlers ?? []);
  return {
    concurrency: workers.reduce((sum, w) => sum + w.concurrency, 0),
    running: workers.reduce((sum, w) => sum + w.running, 0),
    perSecond: handlers.reduce((sum, h) => sum + h.per_second, 0),
    quiet: handlers.length > 0 && handlers.every((h) => h.quiet),
  };
}
