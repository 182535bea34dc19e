import { useMemo } from "react";
import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useLanguage, useText, type Text } from "@/i18n/text";
import { seconds } from "@/lib/duration";
import { numberColumn, Opener } from "@/ui/columns";
import { Command } from "@/ui/Copy";
import { Drawer } from "@/ui/Dialog";
import { Head } from "@/ui/Field";
import { SearchBox } from "@/ui/SearchBox";
import { EmptyState, NoMatch, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { MemberDetails } from "./MemberDetails";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { route, screen } from "./screen";
import { Health, totals } from "./state";

type Member = Schemas["Member"];

const refresh = 2000;

/** WorkersView lists the processes that joined, and opens one. */
export function WorkersView() {
  const t = useText(messages);
  const shown = useLanguage();
  const [{ q = "", member }, setFilter] = useFilter(route.useSearch());
  const members = useApi("/api/v1/members", {}, { every: refresh });
  const search = (value: string) => setFilter({ q: value || undefined });
  return (
    <div className="flex flex-col gap-3">
      <Head title={screen.title[shown]}>
        <SearchBox value={q} onSearch={search} placeholder={t("search")} />
      </Head>
      <Show of={members}>
        {({ members: all }) => (
          <>
            <Members all={all ?? []} q={q} onClear={() => search("")} />
            {member && <Opened all={all ?? []} name={member} onClose={() => setFilter({ member: undefined })} />}
          </>
        )}
      </Show>
    </div>
  );
}

function Opened({ all, name, onClose }: { all: Member[]; name: string; onClose: () => void }) {
  const t = useText(messages);
  const member = all.find((m) => m.member === name);
  return (
    <Drawer title={name} open onClose={onClose}>
      {member ? (
        <MemberDetails member={member} />
      ) : (
        <EmptyState title={t("gone", { member: name })}>
          <p>{t("goneText")}</p>
        </EmptyState>
      )}
    </Drawer>
  );
}

const example = "cluster.Join(broker, cluster.Options{Workers: []*worker.Worker{w}})";

function Members({ all, q, onClear }: { all: Member[]; q: string; onClear: () => void }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ sort }, setFilter] = useFilter(route.useSearch());
  const rows = useMemo(() => all.filter((m) => `${m.member} ${m.host}`.toLowerCase().includes(q.toLowerCase())), [all, q]);
  const open = (m: Member) => setFilter({ member: m.member });
  if (all.length === 0) {
    return (
      <EmptyState title={t("none")}>
        <p>{t("noneText")}</p>
        <Command text={example} />
      </EmptyState>
    );
  }
  if (rows.length === 0) return <NoMatch q={q} count={all.length} onClear={onClear} />;
  return (
    <Table
      label={t("workers")}
      columns={columnsOf(t, f, open)}
      rows={rows}
      rowID={(m) => m.member}
      sort={sort}
      onSort={(next) => setFilter({ sort: next })}
      onOpen={open}
    />
  );
}

function columnsOf(t: Text<keyof typeof en>, f: Format, open: (m: Member) => void): Column<Member>[] {
  const number = (id: keyof typeof en, of: (m: Member) => number, write: (n: number) => string) => numberColumn<Member>({ id, header: t(id), of, write });
  return [
    {
      id: "member",
      header: t("member"),
      of: (m) => m.member,
      cell: (row) => <Opener onOpen={() => open(row)}>{row.member}</Opener>,
    },
    { id: "state", header: t("state"), of: (m) => m.health, cell: (row) => <Health member={row} /> },
    number("running", (m) => totals(m).running, f.number),
    number("concurrency", (m) => totals(m).concurrency, f.number),
    number("perSecond", (m) => totals(m).perSecond, f.rate),
    { id: "host", header: t("host"), of: (m) => m.host, cell: (row) => `${row.host} · ${row.pid}` },
    { id: "version", header: t("version"), of: (m) => m.version ?? "", cell: (row) => row.version },
    number("memory", (m) => m.memory ?? 0, f.bytes),
    number("uptime", (m) => seconds(m.uptime), f.duration),
    { id: "beat", header: t("beat"), of: (m) => m.last_beat, cell: (row) => f.ago(row.last_beat) },
  ];
}
