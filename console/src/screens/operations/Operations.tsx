import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useOperation } from "@/api/operation";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Bar, OperationState, Outcome } from "@/parts/operation/Progress";
import { Opener } from "@/ui/columns";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Drawer } from "@/ui/Dialog";
import { Entries, Entry } from "@/ui/Entries";
import { Check } from "@/ui/Input";
import { JsonTree } from "@/ui/JsonTree";
import { EmptyState, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { route } from "./screen";

type Operation = Schemas["Operation"];

const refresh = 1000;
const most = 200;

/** Operations lists long work with its progress, and opens one. */
export function Operations() {
  const t = useText(messages);
  const [{ open, operation }, setFilter] = useFilter(route.useSearch());
  const loaded = useApi("/api/v1/operations", { query: { limit: most, open: open ? true : undefined } }, { on: "operations", every: refresh });
  return (
    <div className="flex flex-col gap-3">
      <Check label={t("onlyOpen")} checked={open !== undefined} onChange={(e) => setFilter({ open: e.target.checked ? "yes" : undefined })} />
      <Show of={loaded}>
        {({ operations, next }) => (
          <>
            <List all={operations ?? []} />
            {next && <p className="text-muted">{t("more")}</p>}
          </>
        )}
      </Show>
      {operation && (
        <Drawer title={operation} open onClose={() => setFilter({ operation: undefined })}>
          <Details id={operation} />
        </Drawer>
      )}
    </div>
  );
}

function List({ all }: { all: Operation[] }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ open }, setFilter] = useFilter(route.useSearch());
  const show = (o: Operation) => setFilter({ operation: o.operation });
  if (all.length === 0 && open) {
    return (
      <EmptyState title={t("noneOpen")}>
        <p>
          <Button onClick={() => setFilter({ open: undefined })}>{t("all")}</Button>
        </p>
      </EmptyState>
    );
  }
  if (all.length === 0) {
    return (
      <EmptyState title={t("none")}>
        <p>{t("noneText")}</p>
        <Command text="ferry operation ls" />
      </EmptyState>
    );
  }
  return <Table label={t("operations")} columns={columnsOf(t, f, show)} rows={all} rowID={(o) => o.operation} onOpen={show} />;
}

function columnsOf(t: Text<keyof typeof en>, f: Format, show: (o: Operation) => void): Column<Operation>[] {
  return [
    {
      id: "kind",
      header: t("kind"),
      cell: (row) => <Opener onOpen={() => show(row)}>{row.kind}</Opener>,
    },
    { id: "state", header: t("state"), cell: (row) => <OperationState of={row} /> },
    { id: "progress", header: t("progress"), cell: (row) => <Bar of={row} /> },
    { id: "done", header: t("done"), cell: (row) => f.compact(row.done), right: true },
    { id: "skipped", header: t("skipped"), cell: (row) => f.compact(row.skipped), right: true },
    { id: "by", header: t("by"), cell: (row) => row.by },
    { id: "submitted", header: t("submitted"), cell: (row) => f.time(row.submitted) },
    { id: "took", header: t("took"), cell: (row) => took(row, f), right: true },
  ];
}

function took({ started, ended }: Operation, f: Format): string {
  return started && ended ? f.duration(Math.max(0, (Date.parse(ended) - Date.parse(started)) / 1000)) : "";
}

function Details({ id }: { id: string }) {
  const t = useText(messages);
  const f = useFormat();
  return (
    <Show of={useOperation(id)}>
      {(o) => (
        <div className="flex flex-col gap-4">
          <Outcome of={o} />
          <Entries>
            <Entry name={t("kind")}>{o.kind}</Entry>
            {o.by && <Entry name={t("by")}>{o.by}</Entry>}
            {o.submitted && <Entry name={t("submitted")}>{f.time(o.submitted)}</Entry>}
            {o.ended && <Entry name={t("ended")}>{f.time(o.ended)}</Entry>}
            {o.phase && <Entry name={t("phase")}>{o.phase}</Entry>}
            {o.worker && <Entry name={t("worker")}>{o.worker}</Entry>}
          </Entries>
          {o.args !== undefined && (
            <section>
              <h3 className="font-semibold">{t("args")}</h3>
              <JsonTree value={o.args} />
            </section>
          )}
        </div>
      )}
    </Show>
  );
}
