import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useMay } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { ConfirmAct } from "@/parts/ConfirmAct";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Entries, Entry } from "@/ui/Entries";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import { RuleForm } from "./RuleForm";
import { RuleState, type Rule } from "./Rules";
import { route } from "./screen";
import { Severity, Status } from "./state";

/** RuleDetails is what a rule says when, whom it tells, and what it says now. */
export function RuleDetails({ rule, figures, alerts }: { rule: Rule; figures: string[]; alerts: Schemas["Alert"][] }) {
  const t = useText(messages);
  const f = useFormat();
  const list = (all: string[] | null | undefined, none: string) => (all && all.length > 0 ? all.join(", ") : none);
  return (
    <div className="flex flex-col gap-4">
      {rule.when ? <Command text={rule.when} /> : <p className="text-muted">{t("ofEventsText")}</p>}
      <Entries>
        <Entry name={t("now")}>
          <RuleState rule={rule} alerts={alerts} /> <Severity of={rule.severity} />
        </Entry>
        {rule.threshold !== undefined && <Entry name={t("threshold")}>{f.rate(rule.threshold)}</Entry>}
        {rule.for && <Entry name={t("for")}>{f.duration(rule.for)}</Entry>}
        {rule.cooldown && <Entry name={t("cooldown")}>{f.duration(rule.cooldown)}</Entry>}
        <Entry name={t("topics")}>{list(rule.topics, t("everyTopic"))}</Entry>
        <Entry name={t("groups")}>{list(rule.groups, t("everyGroup"))}</Entry>
        <Entry name={t("channels")}>{list(rule.channels, t("everyChannel"))}</Entry>
        {rule.text && <Entry name={t("text")}>{rule.text}</Entry>}
        {rule.action && <Entry name={t("advice")}>{rule.action}</Entry>}
        <Entry name={t("from")}>{t(rule.kept ? "kept" : "configured")}</Entry>
      </Entries>
      <Actions rule={rule} figures={figures} />
      <Now alerts={alerts} />
      {rule.promql && (
        <section className="flex flex-col gap-1">
          <h3 className="font-semibold">PromQL</h3>
          <Command text={rule.promql} />
        </section>
      )}
    </div>
  );
}

/** Now lists the subjects for which a rule holds. */
function Now({ alerts }: { alerts: Schemas["Alert"][] }) {
  const t = useText(messages);
  const f = useFormat();
  const [, setFilter] = useFilter(route.useSearch());
  return (
    <section className="flex flex-col gap-1">
      <h3 className="font-semibold">{t("now")}</h3>
      {alerts.length === 0 && <p className="text-muted">{t("holdsForNone")}</p>}
      <ul className="flex flex-col gap-1">
        {alerts.map((a) => (
          <li key={a.subject} className="flex flex-wrap items-center gap-x-3">
            <Status of={a.status} />
            <button type="button" className="py-0.5 text-accent hover:underline" onClick={() => setFilter({ tab: "alerts", subject: a.subject, q: undefined })}>
              {a.subject}
            </button>
            <span className="min-w-0 wrap-anywhere">{a.text}</span>
            <span className="text-muted">{f.ago(a.since)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Actions({ rule, figures }: { rule: Rule; figures: string[] }) {
  const t = useText(messages);
  const may = useMay();
  const [, setFilter] = useFilter(route.useSearch());
  const [open, setOpen] = useState<"edit" | "remove">();
  const test = useAct("post", "/api/v1/alert-rules/{rule}/test");
  const remove = useAct("delete", "/api/v1/alert-rules/{rule}");
  const name = rule.name ?? "";
  const send = () =>
    test.mutate({ path: { rule: name } }, { ...tell(t("testSent")), onSuccess: ({ id }) => setFilter({ tab: "notifications", id, rule: undefined, q: undefined }) });
  const close = () => setOpen(undefined);
  return (
    <div className="flex flex-wrap gap-2">
      {may("operate") && (
        <Button disabled={test.isPending} onClick={send}>
          {t("test")}
        </Button>
      )}
      {may("admin") && <Button onClick={() => setOpen("edit")}>{t("edit")}</Button>}
      {may("admin") && rule.kept && (
        <Button look="danger" onClick={() => setOpen("remove")}>
          {t("remove")}
        </Button>
      )}
      {open === "edit" && <RuleForm of={rule} figures={figures} onClose={close} />}
      {open === "remove" && (
        <ConfirmAct
          title={t("removeTitle", { name })}
          action={t("remove")}
          busy={remove.isPending}
          act={(after) => remove.mutate({ path: { rule: name } }, after)}
          done={t("removed", { name })}
          onClose={close}
        >
          {t("removeText")}
        </ConfirmAct>
      )}
    </div>
  );
}
