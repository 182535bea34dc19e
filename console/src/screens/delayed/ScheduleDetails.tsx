import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { Entries, Entry } from "@/ui/Entries";
import { Show } from "@/ui/States";
import { messages } from "./messages";
import { ScheduleState } from "./Schedules";

const runs = 5;

/** ScheduleDetails are when a schedule runs next, and what it publishes. */
export function ScheduleDetails({ name }: { name: string }) {
  return <Show of={useApi("/api/v1/schedules/{name}", { path: { name } }, { every: 5000 })}>{(schedule) => <Details of={schedule} />}</Show>;
}

function Details({ of }: { of: Schemas["Schedule"] }) {
  const t = useText(messages);
  const f = useFormat();
  return (
    <div className="flex flex-col gap-4">
      <Entries>
        <Entry name={t("state")}>
          <ScheduleState state={of.state} />
        </Entry>
        <Entry name={t("spec")}>
          <code>{of.spec}</code>
        </Entry>
        {of.zone && <Entry name={t("zone")}>{of.zone}</Entry>}
        <Entry name={t("topic")}>{of.topic}</Entry>
        {of.last && <Entry name={t("last")}>{f.time(of.last)}</Entry>}
        {of.until && <Entry name={t("until")}>{f.time(of.until)}</Entry>}
        {of.jitter && <Entry name={t("jitter")}>{f.duration(of.jitter)}</Entry>}
        {of.missed && <Entry name={t("missed")}>{of.missed}</Entry>}
        {of.problem && (
          <Entry name={t("problem")}>
            <span className="font-mono text-bad">{of.problem}</span>
          </Entry>
        )}
      </Entries>
      <section className="flex flex-col gap-1">
        <h3 className="font-semibold">{t("nextRuns")}</h3>
        {of.state === "active" ? <NextRuns of={of} /> : <p className="text-muted">{t(of.state === "paused" ? "notRunning" : "noRuns")}</p>}
      </section>
      <section className="flex flex-col gap-1">
        <h3 className="font-semibold">{t("body")}</h3>
        {of.hidden ? (
          <p className="text-muted">{t("hidden")}</p>
        ) : (
          <pre className="rounded border border-line bg-ground p-2 wrap-anywhere whitespace-pre-wrap">{of.message?.body ?? of.message?.body_base64 ?? ""}</pre>
        )}
      </section>
    </div>
  );
}

function NextRuns({ of }: { of: Schemas["Schedule"] }) {
  const f = useFormat();
  const ticks = useApi("/api/v1/ticks", { query: { spec: of.spec, zone: of.zone, count: runs } });
  return (
    <Show of={ticks}>
      {({ ticks: all }) => (
        <ol className="list-inside list-decimal">
          {(all ?? []).map((at) => (
            <li key={at}>
              {f.time(at)} <span className="text-muted">{f.ago(at)}</span>
            </li>
          ))}
        </ol>
      )}
    </Show>
  );
}
