import { Ban, SlidersHorizontal } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useApi, type Loaded } from "@/api/query";
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
import { Override } from "./Override";
import { kinds, route } from "./screen";

type Key = Schemas["LimitKey"];
type Kind = (typeof kinds)[number];

const refresh = 3000;
const most = 500;

/** Keys lists those that are blocked, have a rule of their own, or are always let in. */
export function Keys() {
  const t = useText(messages);
  const may = useMay();
  const [{ kind }, setFilter] = useFilter(route.useSearch());
  const [making, setMaking] = useState<"block" | "override">();
  const loaded = useKeys(kind);
  const choices = [{ value: "", label: t("any") }, ...kinds.map((value) => ({ value, label: t(value) }))];
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-2">
        <Select bare label={t("kind")} value={kind ?? ""} choices={choices} onChange={(value) => setFilter({ kind: kinds.find((k) => k === value) })} />
        {may("operate") && (
          <div className="ml-auto flex flex-wrap gap-2">
            <Button onClick={() => setMaking("override")}>
              <SlidersHorizontal aria-hidden className="size-4" />
              {t("override")}
            </Button>
            <Button onClick={() => setMaking("block")}>
              <Ban aria-hidden className="size-4" />
              {t("block")}
            </Button>
          </div>
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
      {making === "block" && <Block onClose={() => setMaking(undefined)} />}
      {making === "override" && <Override onClose={() => setMaking(undefined)} />}
    </div>
  );
}

/** useKeys are those of one kind, or of all of them: the API lists one at a time. */
function useKeys(kind: Kind | undefined): Loaded<Schemas["LimitKeys"]> {
  const ask = (of: Kind) => ({ query: { kind: of, limit: most } });
  const options = (of: Kind) => ({ every: refresh, enabled: kind === undefined || kind === of });
  const blocked = useApi("/api/v1/limits", ask("blocked"), options("blocked"));
  const overridden = useApi("/api/v1/limits", ask("overridden"), options("overridden"));
  const whitelisted = useApi("/api/v1/limits", ask("whitelisted"), options("whitelisted"));
  const all = { blocked, overridden, whitelisted };
  const parts = kind ? [all[kind]] : Object.values(all);
  const missing = parts.find((p) => p.data === undefined);
  const keys = new Map(parts.flatMap((p) => p.data?.keys ?? []).map((k) => [`${k.limit}\n${k.key}`, k]));
  const next = parts.map((p) => p.data?.next).find(Boolean);
  return { ...(missing ?? blocked), data: missing ? undefined : { keys: [...keys.values()], ...(next && { next }) } };
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
    { id: "key", header: t("key"), cell: (row) => <span className="font-medium">{row.key}</span> },
    { id: "limit", header: t("limit"), cell: (row) => row.limit },
    { id: "state", header: t("state"), cell: (row) => <KeyState of={row} /> },
    { id: "until", header: t("until"), cell: (k) => (k.block && !k.block.until ? t("forGood") : f.time(k.block?.until ?? k.override?.until)) },
    { id: "rule", header: t("rule"), cell: (row) => rule(row.override?.rule ?? row.rule) },
    { id: "violations", header: t("violations"), cell: (row) => f.number(row.violations), right: true },
    { id: "reason", header: t("reason"), cell: (row) => row.reason },
    { id: "who", header: t("who"), cell: (row) => row.actor },
    { id: "actions", header: t("actions"), cell: (row) => <KeyActions of={row} /> },
  ];
}
