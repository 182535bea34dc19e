import { useText } from "@/i18n/text";
import { Badge, type Tone } from "@/ui/Badge";
import { messages } from "./messages";

export const states = ["ready", "inflight", "waiting", "delayed", "held", "dead", "invalid", "done"] as const;
export type State = (typeof states)[number];

const tones: Record<State, Tone> = {
  ready: "info",
  inflight: "good",
  waiting: "warn",
  delayed: "info",
  held: "info",
  dead: "bad",
  invalid: "bad",
  done: "good",
};

/** StateBadge is the state of a message. One that is not known is shown as it is. */
export function StateBadge({ state }: { state: string | undefined }) {
  const t = useText(messages);
  const known = states.find((s) => s === state);
  if (!known) return <Badge tone="info">{state}</Badge>;
  return <Badge tone={tones[known]}>{t(known)}</Badge>;
}
