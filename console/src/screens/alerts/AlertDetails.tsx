import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useSession } from "@/api/session";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { Entries, Entry } from "@/ui/Entries";
import { Show } from "@/ui/States";
import { AlertActions } from "./AlertActions";
import { What } from "./History";
import { messages } from "./messages";
import { Silence, type Silenced } from "./Silence";
import { Severity, Status } from "./state";

/** AlertDetails is one alert: since when, who was told, who takes care, and what happened to it. */
export function AlertDetails({ rule, subject }: { rule: string; subject: string }) {
  const loaded = useApi("/api/v1/alerts/{rule}/{subject}", { path: { rule, subject } }, { every: 3000 });
  return <Show of={loaded}>{(alert) => <Details of={alert} />}</Show>;
}

function Details({ of }: { of: Schemas["AlertShown"] }) {
  const t = useText(messages);
  const f = useFormat();
  const [silencing, setSilencing] = useState<Silenced>();
  return (
    <div className="flex flex-col gap-4">
      {of.text && <p className="text-base wrap-anywhere">{of.text}</p>}
      <Entries>
        <Entry name={t("state")}>
          <Status of={of.status} /> <Severity of={of.severity} />
        </Entry>
        <Entry name={t("subject")}>
          <Subject of={of.subject} />
        </Entry>
        <Condition rule={of.rule} />
        <Entry name={t("since")}>{f.time(of.since)}</Entry>
        {of.fired && <Entry name={t("fired")}>{f.time(of.fired)}</Entry>}
        {of.ended && <Entry name={t("ended")}>{f.time(of.ended)}</Entry>}
        <Entry name={t("notices")}>{of.notified ? t("noticesLast", { count: of.notices, at: f.ago(of.notified) }) : f.number(of.notices)}</Entry>
        {of.acknowledged && <Entry name={t("acknowledged")}>{of.acknowledged}</Entry>}
      </Entries>
      <div>
        <AlertActions of={of} onSilence={setSilencing} />
      </div>
      <section className="flex flex-col gap-1">
        <h3 className="font-semibold">{t("history")}</h3>
        <ol className="flex flex-col gap-1">
          {(of.history ?? []).map((e) => (
            <li key={`${e.at} ${e.what}`} className="flex flex-wrap items-center gap-x-3">
              <span className="text-muted">{f.time(e.at)}</span>
              <What of={e.what} />
              <span className="min-w-0 wrap-anywhere">{e.text}</span>
            </li>
          ))}
        </ol>
        {(of.history ?? []).length === 0 && <p className="text-muted">{t("noHistory")}</p>}
      </section>
      {silencing && <Silence of={silencing} onClose={() => setSilencing(undefined)} />}
    </div>
  );
}

/** Subject leads to the topic that an alert is about. */
function Subject({ of }: { of: string }) {
  const [topic = ""] = of.split("/");
  if (of === "system") return of;
  return (
    <Link to="/topics/$topic" params={{ topic }} className="text-accent hover:underline">
      {of}
    </Link>
  );
}

/** Condition is the expression of the rule, where the server has it. */
function Condition({ rule }: { rule: string }) {
  const t = useText(messages);
  const f = useFormat();
  const { broker } = useSession();
  const rules = useApi("/api/v1/alert-rules", {}, { enabled: broker.alerts });
  const found = rules.data?.rules?.find((r) => r.name === rule);
  if (!found?.when) return null;
  return (
    <Entry name={t("when")}>
      <code>{found.when}</code>
      {found.threshold !== undefined && <span className="text-muted"> · {t("thresholdIs", { value: f.rate(found.threshold) })}</span>}
    </Entry>
  );
}
