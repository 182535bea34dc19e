import type { Schemas } from "@/api/client";
import { severities } from "./state";

type Alert = Schemas["Alert"];

const ranks: Record<Alert["status"], number> = { firing: 0, pending: 1, resolved: 2 };

/** worstFirst compares alerts: what fires stands above what is about to, the worse above the milder, the newer above the older. */
export function worstFirst(a: Alert, b: Alert): number {
  const severity = severities.indexOf(b.severity) - severities.indexOf(a.severity);
  return ranks[a.status] - ranks[b.status] || severity || Date.parse(b.since ?? "") - Date.parse(a.since ?? "") || a.subject.localeCompare(b.subject);
}
