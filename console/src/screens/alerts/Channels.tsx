import { Send } from "lucide-react";
import { useState, type FormEvent } from "react";
import type { Schemas } from "@/api/client";
import { useAct, useApi } from "@/api/query";
import { useMay } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { EmptyState, Refused, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { Destination } from "./Destination";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { route } from "./screen";

export type Channel = Schemas["NotifyChannel"];

/** Channels lists how people are told, and whether that works. */
export function Channels() {
  const t = useText(messages);
  const f = useFormat();
  const may = useMay();
  const [testing, setTesting] = useState<Channel>();
  const loaded = useApi("/api/v1/channels", {}, { every: 5000 });
  return (
    <>
      <Show of={loaded}>
        {({ channels }) =>
          channels && channels.length > 0 ? (
            <Table label={t("channels")} columns={columnsOf(t, f, may("operate"), setTesting)} rows={channels} rowID={(c) => c.name} />
          ) : (
            <NoChannels />
          )
        }
      </Show>
      {testing && <Test channel={testing} onClose={() => setTesting(undefined)} />}
    </>
  );
}

export function NoChannels() {
  const t = useText(messages);
  return (
    <EmptyState title={t("noChannels")} icon={Send}>
      <p>{t("noChannelsText")}</p>
    </EmptyState>
  );
}

/** Health is how the last send ended. */
function Health({ of }: { of: Channel }) {
  const t = useText(messages);
  if (!of.last_at) return <Badge tone="info">{t("nothingSent")}</Badge>;
  if (of.last_code) return <Badge tone="bad">{t("lastFailed")}</Badge>;
  return <Badge tone="good">{t("lastTaken")}</Badge>;
}

function columnsOf(t: Text<keyof typeof en>, f: Format, may: boolean, test: (c: Channel) => void): Column<Channel>[] {
  const number = (id: "sent" | "failed" | "retried" | "limited" | "processes"): Column<Channel> => ({
    id,
    header: t(id),
    cell: (row) => f.compact(row[id]),
    right: true,
  });
  return [
    { id: "channel", header: t("channel"), cell: (row) => <span className="font-medium">{row.name}</span> },
    { id: "state", header: t("state"), cell: (row) => <Health of={row} /> },
    { id: "last", header: t("last"), cell: (row) => f.ago(row.last_at) },
    { id: "error", header: t("error"), cell: (c) => <span className="text-bad">{[c.last_code, c.last_error].filter(Boolean).join(": ")}</span> },
    number("sent"),
    number("failed"),
    number("retried"),
    number("limited"),
    { id: "rates", header: t("rates"), cell: (row) => row.rates?.map((r) => t("rate", { sends: r.sends, per: f.duration(r.per) })).join(", ") },
    { id: "to", header: t("destinations"), cell: (row) => row.destinations?.join(", ") || t("addresses") },
    number("processes"),
    {
      id: "actions",
      header: t("actions"),
      cell: (row) =>
        may && (
          <Button look="bare" onClick={() => test(row)}>
            {t("test")}
          </Button>
        ),
    },
  ];
}

/** Test sends one to a destination, and shows its receipt. */
function Test({ channel, onClose }: { channel: Channel; onClose: () => void }) {
  const t = useText(messages);
  const [, setFilter] = useFilter(route.useSearch());
  const [to, setTo] = useState(channel.destinations?.[0] ?? "");
  const test = useAct("post", "/api/v1/channels/{channel}/test");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    test.mutate({ path: { channel: channel.name }, body: { to } }, { onSuccess: ({ id }) => setFilter({ tab: "notifications", id }) });
  };
  return (
    <Dialog title={t("testTitle", { channel: channel.name })} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <p className="text-muted">{t("testText")}</p>
        <Destination channel={channel} value={to} onChange={setTo} />
        {test.error && <Refused problem={test.error} />}
        <Button type="submit" look="primary" disabled={test.isPending}>
          {t("send")}
        </Button>
      </form>
    </Dialog>
  );
}
