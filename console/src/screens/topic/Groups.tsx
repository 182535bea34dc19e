import type { Schemas } from "@/api/client";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { whyGroup } from "@/lib/why";
import { WhyBadge, WhySentence } from "@/parts/why/Why";
import { useWords } from "@/parts/words/words";
import { Command } from "@/ui/Copy";
import { EmptyState } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { messages } from "./messages";

/** Groups lists the groups of a topic, and why each does what it does. */
export function Groups({ topic }: { topic: Schemas["Topic"] }) {
  const t = useText(messages);
  const f = useFormat();
  const word = useWords();
  const groups = topic.groups ?? [];
  if (groups.length === 0) {
    return (
      <EmptyState title={t("noGroups")}>
        <p>{t("noGroupsText")}</p>
        <Command text={`ferry sub ${topic.topic} --group NAME`} />
      </EmptyState>
    );
  }
  const number = (id: string, header: string, of: (g: Schemas["Group"]) => string): Column<Schemas["Group"]> => ({
    id,
    header,
    cell: (row) => of(row),
    right: true,
  });
  const columns: Column<Schemas["Group"]>[] = [
    { id: "group", header: t("group"), cell: (row) => <span className="font-medium">{row.group}</span> },
    { id: "state", header: t("state"), cell: (row) => <WhyBadge why={whyGroup(topic, row)} /> },
    number("consumers", t("consumers"), (g) => f.number(g.consumers)),
    number("ready", t("lag"), (g) => f.compact(g.ready)),
    number("running", t("running"), (g) => f.compact(g.inflight)),
    number("retrying", t("retrying"), (g) => f.compact(g.waiting)),
    number("dead", t("dead"), (g) => f.compact(g.dead)),
    number("oldest", t("oldest"), (g) => f.duration(g.oldest)),
    { id: "order", header: t("order"), cell: (row) => word("order", row.order) },
    { id: "why", header: t("why"), cell: (row) => <WhySentence why={whyGroup(topic, row)} /> },
  ];
  return <Table label={t("groups")} columns={columns} rows={groups} rowID={(g) => g.group} />;
}
