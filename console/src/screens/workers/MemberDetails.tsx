import { useState, type FormEvent } from "react";
import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useMay } from "@/api/session";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { MessageLink } from "@/parts/messages/MessageRows";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Dialog";
import { Entries, Entry } from "@/ui/Entries";
import { Input } from "@/ui/Input";
import { Table, type Column } from "@/ui/Table";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { Health, StateOf, totals } from "./state";

type Member = Schemas["Member"];
type Running = Schemas["Running"];
type Handler = Schemas["Handler"];

/** MemberDetails are the handlers and messages of one process, and what it can be told to do. */
export function MemberDetails({ member }: { member: Member }) {
  const t = useText(messages);
  const f = useFormat();
  const may = useMay();
  const handlers = (member.workers ?? []).flatMap((w) => w.handlers ?? []);
  const omitted = (member.workers ?? []).reduce((sum, w) => sum + (w.omitted ?? 0), 0);
  return (
    <div className="flex flex-col gap-4">
      <Entries>
        <Entry name={t("state")}>
          <Health member={member} />
        </Entry>
        <Entry name={t("host")}>{`${member.host} · ${member.pid}`}</Entry>
        {member.version && <Entry name={t("version")}>{member.version}</Entry>}
        <Entry name={t("uptime")}>{f.duration(member.uptime)}</Entry>
        <Entry name={t("beat")}>{f.ago(member.last_beat)}</Entry>
      </Entries>
      {may("operate") && <Tell member={member} />}
      <section className="flex flex-col gap-2">
        <h3 className="font-semibold">{t("handlers")}</h3>
        <Table label={t("handlers")} columns={handlerColumns(t, f)} rows={handlers} rowID={(h) => `${h.topic}/${h.group}`} />
        {omitted > 0 && <p className="text-muted">{t("omitted", { count: omitted })}</p>}
      </section>
      <Messages member={member} />
    </div>
  );
}

/** Tell has the process take no more messages, or more or fewer at once. */
function Tell({ member }: { member: Member }) {
  const t = useText(messages);
  const { concurrency, quiet } = totals(member);
  const [wanted, setWanted] = useState(String(Math.max(1, concurrency)));
  const command = useAct("post", "/api/v1/members/{member}/commands");
  const path = { member: member.member };
  const scale = (e: FormEvent) => {
    e.preventDefault();
    const count = Number(wanted);
    command.mutate({ path, body: { do: "scale", concurrency: count } }, tell(t("scaled", { member: member.member, count })));
  };
  return (
    <div className="flex flex-wrap items-end gap-3">
      <Button
        disabled={command.isPending}
        onClick={() => command.mutate({ path, body: { do: quiet ? "resume" : "quiet" } }, tell(t(quiet ? "resumed" : "quieted", path)))}
      >
        {t(quiet ? "resume" : "quiet")}
      </Button>
      <form onSubmit={scale} className="flex items-end gap-1.5">
        <Input className="w-24" label={t("concurrency")} type="number" min={1} required value={wanted} onChange={(e) => setWanted(e.target.value)} />
        <Button type="submit" disabled={command.isPending}>
          {t("scale")}
        </Button>
      </form>
    </div>
  );
}

function Messages({ member }: { member: Member }) {
  const t = useText(messages);
  const f = useFormat();
  const may = useMay();
  const [cancel, setCancel] = useState<Running>();
  const rows = member.running ?? [];
  return (
    <section className="flex flex-col gap-2">
      <h3 className="font-semibold">{t("messages")}</h3>
      {rows.length === 0 ? (
        <p className="text-muted">{t("noMessages")}</p>
      ) : (
        <Table
          label={t("messages")}
          columns={runningColumns(t, f, (topic) => may("operate", topic), setCancel)}
          rows={rows}
          rowID={(r) => `${r.topic}/${r.group}/${r.id}/${r.attempt}`}
        />
      )}
      {cancel && <Cancel member={member.member} message={cancel} onClose={() => setCancel(undefined)} />}
    </section>
  );
}

function Cancel({ member, message, onClose }: { member: string; message: Running; onClose: () => void }) {
  const t = useText(messages);
  const command = useAct("post", "/api/v1/members/{member}/commands");
  const { topic, group, id } = message;
  const run = () => command.mutate({ path: { member }, body: { do: "cancel", topic, group, id } }, tell(t("cancelled", { id }), onClose));
  return (
    <Confirm title={t("cancelTitle", { id })} open onClose={onClose} action={t("cancelDo")} busy={command.isPending} onConfirm={run}>
      {t("cancelText")}
    </Confirm>
  );
}

function handlerColumns(t: Text<keyof typeof en>, f: Format): Column<Handler>[] {
  const right = (id: keyof typeof en, of: (h: Handler) => string): Column<Handler> => ({
    id,
    header: t(id),
    cell: (row) => of(row),
    right: true,
  });
  return [
    { id: "topic", header: t("topic"), cell: (row) => row.topic },
    { id: "group", header: t("group"), cell: (row) => row.group },
    { id: "state", header: t("state"), cell: (row) => <StateOf state={row.quiet ? "quiet" : row.state} /> },
    right("running", (h) => f.number(h.running)),
    right("perSecond", (h) => f.rate(h.per_second)),
    right("acked", (h) => f.compact(h.acked)),
    right("retried", (h) => f.compact(h.retried)),
    right("dead", (h) => f.compact(h.dead)),
    right("mean", (h) => f.duration(h.mean)),
  ];
}

function runningColumns(t: Text<keyof typeof en>, f: Format, may: (topic: string) => boolean, cancel: (r: Running) => void): Column<Running>[] {
  return [
    { id: "topic", header: t("topic"), cell: (row) => row.topic },
    {
      id: "age",
      header: t("age"),
      cell: (row) => (row.zombie ? <Badge tone="warn">{t("zombie")}</Badge> : f.duration(row.for)),
      right: true,
    },
    { id: "attempt", header: t("attempt"), cell: (row) => f.number(row.attempt), right: true },
    { id: "key", header: t("key"), cell: (row) => row.key },
    {
      id: "actions",
      header: t("actions"),
      cell: (row) =>
        may(row.topic) && (
          <Button look="bare" onClick={() => cancel(row)}>
            {t("cancel")}
          </Button>
        ),
    },
    { id: "id", header: t("id"), cell: (row) => <MessageLink message={row} /> },
  ];
}
