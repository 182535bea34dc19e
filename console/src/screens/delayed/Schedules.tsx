import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Badge, type Tone } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Drawer } from "@/ui/Dialog";
import { SearchBox } from "@/ui/SearchBox";
import { EmptyState, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { ScheduleActions } from "./ScheduleActions";
import { ScheduleDetails } from "./ScheduleDetails";
import { route } from "./screen";

type Schedule = Schemas["Schedule"];

const refresh = 5000;
const most = 500;
const tones: Record<Schedule["state"], Tone> = { active: "good", paused: "paused", ended: "info" };

/** Schedules lists what publishes by itself, and opens one. */
export function Schedules() {
  const t = useText(messages);
  const [{ q = "", schedule }, setFilter] = useFilter(route.useSearch());
  const loaded = useApi("/api/v1/schedules", { query: { prefix: q, limit: most } }, { every: refresh });
  const search = (value: string) => setFilter({ q: value || undefined });
  return (
    <div className="flex flex-col gap-3">
      <SearchBox value={q} onSearch={search} placeholder={t("search")} />
      <Show of={loaded}>
        {({ schedules, next }) => (
          <>
            <List all={schedules ?? []} q={q} onClear={() => search("")} />
            {next && <p className="text-muted">{t("first", { count: most })}</p>}
          </>
        )}
      </Show>
      {schedule && (
        <Drawer title={schedule} open onClose={() => setFilter({ schedule: undefined })}>
          <ScheduleDetails name={schedule} />
        </Drawer>
      )}
    </div>
  );
}

function List({ all, q, onClear }: { all: Schedule[]; q: string; onClear: () => void }) {
  const t = useText(messages);
  const f = useFormat();
  const [, setFilter] = useFilter(route.useSearch());
  const open = (s: Schedule) => setFilter({ schedule: s.name });
  if (all.length === 0 && q !== "") {
    return (
      <EmptyState title={t("noScheduleMatch", { q })}>
        <p>
          <Button onClick={onClear}>{t("clear")}</Button>
        </p>
      </EmptyState>
    );
  }
  if (all.length === 0) {
    return (
      <EmptyState title={t("noSchedules")}>
        <p>{t("noSchedulesText")}</p>
        <Command text={`ferry schedule put daily-report '0 3 * * *' reports '{"kind":"daily"}'`} />
      </EmptyState>
    );
  }
  return <Table label={t("schedules")} columns={columnsOf(t, f, open)} rows={all} rowID={(s) => s.name} onOpen={open} />;
}

/** ScheduleState is whether a schedule ticks, in a word. */
export function ScheduleState({ state }: { state: Schedule["state"] }) {
  const t = useText(messages);
  return <Badge tone={tones[state]}>{t(state)}</Badge>;
}

function columnsOf(t: Text<keyof typeof en>, f: Format, open: (s: Schedule) => void): Column<Schedule>[] {
  return [
    {
      id: "name",
      header: t("name"),
      cell: (row) => (
        <button type="button" className="py-0.5 font-medium text-accent hover:underline" onClick={() => open(row)}>
          {row.name}
        </button>
      ),
    },
    { id: "state", header: t("state"), cell: (row) => <ScheduleState state={row.state} /> },
    { id: "spec", header: t("spec"), cell: (row) => <span className="font-mono">{row.spec}</span> },
    { id: "topic", header: t("topic"), cell: (row) => row.topic },
    { id: "next", header: t("next"), cell: (row) => f.time(row.next) },
    { id: "last", header: t("last"), cell: (row) => f.time(row.last) },
    { id: "actions", header: t("actions"), cell: (row) => <ScheduleActions schedule={row} /> },
  ];
}
