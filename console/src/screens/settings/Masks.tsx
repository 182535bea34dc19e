import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useText } from "@/i18n/text";
import { Command } from "@/ui/Copy";
import { Panel } from "@/ui/Field";
import { EmptyState, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { messages } from "./messages";

type Mask = Schemas["Mask"];

/** Masks lists what is hidden of messages. It is configured, so that nobody who is logged in can lift it. */
export function Masks() {
  const t = useText(messages);
  const loaded = useApi("/api/v1/masks", {});
  const list = (all: string[] | null | undefined, none: string) => (all && all.length > 0 ? all.join(", ") : none);
  const columns: Column<Mask>[] = [
    { id: "topics", header: t("onTopics"), cell: (row) => list(row.topics, t("onAll")) },
    { id: "headers", header: t("headers"), cell: (row) => <code>{list(row.headers, "–")}</code> },
    { id: "fields", header: t("fields"), cell: (row) => <code>{list(row.fields, "–")}</code> },
  ];
  return (
    <Panel title={t("masks")}>
      <div className="flex flex-col gap-2">
        <p className="text-muted">{t("masksText")}</p>
        <Show of={loaded}>
          {({ masks }) =>
            masks && masks.length > 0 ? (
              <Table label={t("masks")} columns={columns} rows={masks} rowID={(m) => JSON.stringify(m)} />
            ) : (
              <EmptyState title={t("noMasks")}>
                <p>{t("noMasksText")}</p>
                <Command text='masks: [{topics: ["mail.*"], headers: [authorization], fields: [password]}]' />
              </EmptyState>
            )
          }
        </Show>
      </div>
    </Panel>
  );
}
