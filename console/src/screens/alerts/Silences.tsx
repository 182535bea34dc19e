import { BellOff } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useAct, useApi } from "@/api/query";
import { useMay } from "@/api/session";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { EmptyState, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import { Silence } from "./Silence";

type Kept = Schemas["Silence"];

/** Silences lists those that last, and ends them. */
export function Silences() {
  const t = useText(messages);
  const f = useFormat();
  const may = useMay();
  const [adding, setAdding] = useState(false);
  const loaded = useApi("/api/v1/silences", {}, { every: 5000 });
  const columns: Column<Kept>[] = [
    { id: "rule", header: t("rule"), cell: (row) => row.rule || t("everyRule") },
    { id: "subject", header: t("subject"), cell: (row) => row.subject || t("everySubject") },
    { id: "until", header: t("until"), cell: (s) => (s.until ? `${f.time(s.until)} · ${f.ago(s.until)}` : t("configured")) },
    { id: "who", header: t("who"), cell: (row) => row.who },
    { id: "comment", header: t("reason"), cell: (row) => row.comment },
    { id: "actions", header: t("actions"), cell: (row) => may("operate") && <End of={row} /> },
  ];
  return (
    <div className="flex flex-col gap-3">
      {may("operate") && (
        <Button className="self-end" onClick={() => setAdding(true)}>
          <BellOff aria-hidden className="size-4" />
          {t("newSilence")}
        </Button>
      )}
      <Show of={loaded}>
        {({ silences }) =>
          silences && silences.length > 0 ? (
            <Table label={t("silences")} columns={columns} rows={silences} rowID={(s) => s.id ?? `${s.rule ?? ""}\n${s.subject ?? ""}`} />
          ) : (
            <EmptyState title={t("noSilences")} icon={BellOff}>
              <p>{t("noSilencesText")}</p>
              <Command text="ferry alert silence 2h --rule 'queue*' --subject 'orders/*'" />
            </EmptyState>
          )
        }
      </Show>
      {adding && <Silence of={{ rule: "", subject: "" }} onClose={() => setAdding(false)} />}
    </div>
  );
}

/** End ends a silence that is kept in the broker; one of the configuration ends there. */
function End({ of }: { of: Kept }) {
  const t = useText(messages);
  const end = useAct("delete", "/api/v1/silences/{id}");
  const { id } = of;
  if (!id) return null;
  return (
    <Button look="bare" disabled={end.isPending} onClick={() => end.mutate({ path: { id } }, tell(t("silenceEnded")))}>
      {t("endSilence")}
    </Button>
  );
}
