import { Send as Icon } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useAct, useApi } from "@/api/query";
import { useMay } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Badge, type Tone } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Command, Copy } from "@/ui/Copy";
import { SearchBox } from "@/ui/SearchBox";
import { EmptyState, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { route } from "./screen";
import { Send } from "./Send";

type Notification = Schemas["Notification"];
type Target = Schemas["NotificationTarget"];

const tones: Record<Notification["status"], Tone> = { queued: "info", processing: "info", success: "good", partial: "warn", failed: "bad", cancelled: "paused" };

/** Notifications shows what became of one, target by target, and sends another. */
export function Notifications() {
  const t = useText(messages);
  const may = useMay();
  const [{ id }, setFilter] = useFilter(route.useSearch());
  const [sending, setSending] = useState(false);
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-start gap-2">
        <SearchBox value={id ?? ""} onSearch={(value) => setFilter({ id: value || undefined })} placeholder={t("searchID")} />
        {may("operate") && (
          <Button onClick={() => setSending(true)}>
            <Icon aria-hidden className="size-4" />
            {t("sendNew")}
          </Button>
        )}
      </div>
      {id ? <Receipt key={id} id={id} /> : <Which />}
      {sending && <Send onClose={() => setSending(false)} onSent={(sent) => setFilter({ id: sent })} />}
    </div>
  );
}

function Which() {
  const t = useText(messages);
  return (
    <EmptyState title={t("which")} icon={Icon}>
      <p>{t("whichText")}</p>
      <Command text="ferry notify send 'Disk full' 'db1 has 2 % left' --to slack:ops" />
    </EmptyState>
  );
}

function ended(n: Notification): boolean {
  return n.status !== "queued" && n.status !== "processing";
}

/** Receipt follows a notification until nothing more happens. */
function Receipt({ id }: { id: string }) {
  const t = useText(messages);
  const f = useFormat();
  const loaded = useApi("/api/v1/notifications/{id}", { path: { id } }, { every: 1000, until: ended });
  return (
    <Show of={loaded}>
      {(n) => (
        <div className="flex flex-col gap-3">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <h2 className="flex items-center gap-1 font-mono wrap-anywhere">
              {n.id}
              <Copy text={n.id} label={t("copyID")} />
            </h2>
            <Badge tone={tones[n.status]}>{t(`sent.${n.status}`)}</Badge>
            <span role="status" className="text-muted">
              {t("reachedOf", { succeeded: n.succeeded, total: n.total, failed: n.failed, cancelled: n.cancelled })}
            </span>
            {!ended(n) && <Cancel id={n.id} />}
          </div>
          <Table label={t("targets")} columns={columnsOf(t, f)} rows={n.targets ?? []} rowID={(x) => `${x.channel} ${x.to}`} />
        </div>
      )}
    </Show>
  );
}

function Cancel({ id }: { id: string }) {
  const t = useText(messages);
  const may = useMay();
  const cancel = useAct("post", "/api/v1/notifications/{id}/cancel");
  if (!may("operate")) return null;
  return (
    <Button look="danger" disabled={cancel.isPending} onClick={() => cancel.mutate({ path: { id } }, tell(t("calledBack")))}>
      {t("callBack")}
    </Button>
  );
}

function columnsOf(t: Text<keyof typeof en>, f: Format): Column<Target>[] {
  const known = (status: string) => (Object.keys(tones) as Notification["status"][]).find((s) => s === status) ?? "processing";
  return [
    { id: "channel", header: t("channel"), cell: (row) => <span className="font-medium">{row.channel}</span> },
    { id: "to", header: t("to"), cell: (row) => row.to },
    { id: "state", header: t("state"), cell: (x) => <Badge tone={tones[known(x.status)]}>{t(`sent.${known(x.status)}`)}</Badge> },
    { id: "reached", header: t("reached"), cell: (x) => [x.reached_channel, x.reached_to].filter(Boolean).join(" · ") },
    { id: "error", header: t("error"), cell: (x) => <span className="text-bad">{[x.code, x.error].filter(Boolean).join(": ")}</span> },
    { id: "attempts", header: t("attempts"), cell: (row) => f.number(row.attempts), right: true },
    { id: "took", header: t("took"), cell: (x) => x.took && f.duration(x.took), right: true },
    { id: "at", header: t("at"), cell: (row) => f.time(row.at) },
    { id: "vendor", header: t("vendorID"), cell: (row) => <span className="font-mono">{row.vendor_id ?? row.digest}</span> },
  ];
}
