import type { Schemas } from "@/api/client";
import { useText } from "@/i18n/text";
import { Badge, type Tone } from "@/ui/Badge";
import { messages } from "./messages";

type Alert = Schemas["Alert"];

const statusTones: Record<Alert["status"], Tone> = { firing: "bad", pending: "warn", resolved: "good" };
const severityTones: Record<Alert["severity"], Tone> = { info: "info", warning: "warn", critical: "bad", page: "bad", emergency: "bad" };

/** severities are from the least to the worst. */
export const severities = ["info", "warning", "critical", "page", "emergency"] as const;

export function Status({ of }: { of: Alert["status"] }) {
  const t = useText(messages);
  return <Badge tone={statusTones[of]}>{t(of)}</Badge>;
}

/** Severity is one that this console knows, or what the server calls it. */
export function Severity({ of }: { of: string | undefined }) {
  const t = useText(messages);
  const known = severities.find((s) => s === (of || "warning"));
  return known ? <Badge tone={severityTones[known]}>{t(known)}</Badge> : <Badge tone="info">{of}</Badge>;
}
