import { Ban } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useMay } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Select } from "@/ui/Input";
import { EmptyState, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { Block } from "./Block";
import { KeyActions, KeyState, useRule } from "./key";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { kinds, route } from "./screen";

type Key = Schemas["LimitKey"];

const refresh = 3000;
const most = 500;

/** Keys lists those that are blocked, have a rule of their own, or are always let in. */
export function Keys() {
  const t = useText(messages);
  const may = useMay();
  const [{ kind }, setFilter] = useFilter(route.useSearch());
  const [blocking, setBlocking] = useState(false);
  const loaded = useApi("/api/v1/limits", { query: { kind, limit: most } }, { every: refresh });
  const choices = [{ value: "", label: t("any") }, ...kinds.map((value) => ({ value, label: t(value) }))];
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-2">
        <Select bare label={t("kind")} value={kind ?? ""} choices={choices} onChange={(value) => setFilter({ kind: kinds.find((k) => k === value) })} />
        {may("operate") && (
          <Button className="ml-auto" onClick={() => setBlocking(true)}>
            <Ban aria-hidden className="size-4" />
            {t("block")}
          </Button>
        )}
      </div>
      <Show of={loaded}>
        {({ keys, next }) => (
          <>
            <List all={keys ?? []} filtered={kind !== undefined} onClear={() => setFilter({ kind: undefined })} />
            {next && <p className="text-muted">{t("more")}</p>}
          </>
        )}
      </Show>
      {blocking && <Block onClose={() => setBlocking(false)} />}
    </div>
  );
}

function List({ all, filtered, onClear }: { all: Key[]; filtered: boolean; onClear: () => void }) {
  const t = useText(messages);
  const f = useFormat();
  const rule = useRule();
  if (all.length === 0 && filtered) {
    return (
      <EmptyState title={t("noneKind")}>
        <p>
          <Button onClick={onClear}>{t("clear")}</Button>
        </p>
      </EmptyState>
    );
  }
  if (all.length === 0) {
    return (
      <EmptyState title={t("none")}>
        <p>{t("noneText")}</p>
        <Command text="ferry limit block ann --for 10m" />
      </EmptyState>
    );
  }
  return <Table label={t("keys")} columns={columnsOf(t, f, rule)} rows={all} rowID={(k) => `${k.limit} ${k.key}`} />;
}

function columnsOf(t: Text<keyof typeof en>, f: Format, rule: (r: Schemas["Rule"] | undefined) => string): Column<Key>[] {
  return [
    { id: "key", header: t("key"), cell: ({ row }) => <span className="font-medium">{row.original.key}</span> },
    { id: "limit", header: t("limit"), cell: ({ row }) => row.original.limit },
    { id: "state", header: t("state"), cell: ({ row }) => <KeyState of={row.original} /> },
    { id: "until", header: t("until"), cell: ({ row: { original: k } }) => (k.block && !k.block.until ? t("forGood") : f.time(k.block?.until ?? k.override?.until)) },
    { id: "rule", header: t("rule"), cell: ({ row }) => rule(row.original.override?.rule ?? row.original.rule) },
    { id: "violations", header: t("violations"), cell: ({ row }) => f.number(row.original.violations), meta: { right: true } },
    { id: "reason", header: t("reason"), cell: ({ row }) => row.original.reason },
    { id: "who", header: t("who"), cell: ({ row }) => row.original.actor },
    { id: "actions", header: t("actions"), cell: ({ row }) => <KeyActions of={row.original} /> },
  ];
}
