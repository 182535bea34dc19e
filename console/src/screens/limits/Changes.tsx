import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { EmptyState, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { messages } from "./messages";

type Change = Schemas["LimitChange"];

/** Changes lists who changed a limit, newest first. */
export function Changes() {
  const t = useText(messages);
  const f = useFormat();
  const loaded = useApi("/api/v1/limits/changes", { query: { limit: 200 } }, { every: 5000 });
  const columns: Column<Change>[] = [
    { id: "at", header: t("at"), cell: (row) => f.time(row.at) },
    { id: "who", header: t("who"), cell: (row) => row.actor },
    { id: "action", header: t("action"), cell: (row) => row.action },
    { id: "limit", header: t("limit"), cell: (row) => row.limit },
    { id: "key", header: t("key"), cell: (row) => row.key },
    { id: "reason", header: t("reason"), cell: (row) => row.reason },
  ];
  return (
    <Show of={loaded}>
      {({ changes }) =>
        changes && changes.length > 0 ? (
          <Table label={t("changes")} columns={columns} rows={changes} rowID={(c) => `${c.at} ${c.action} ${c.limit ?? ""} ${c.key ?? ""}`} />
        ) : (
          <EmptyState title={t("noChanges")}>
            <p>{t("noChangesText")}</p>
          </EmptyState>
        )
      }
    </Show>
  );
}
