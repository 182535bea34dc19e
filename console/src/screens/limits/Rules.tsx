import { Plus } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useAct, useApi } from "@/api/query";
import { useMay } from "@/api/session";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { EmptyState, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { tell } from "@/ui/tell";
import { Because } from "./Because";
import { useRule } from "./key";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { SetRule } from "./SetRule";

type Rule = Schemas["LimitRule"];

/** Doing is what is being done to a rule, or to none yet. */
type Doing = { what: "set"; rule?: Rule } | { what: "clear"; rule: Rule };

/** Rules lists those that were set for whole limits, or groups of them, in place of what programs say. */
export function Rules() {
  const t = useText(messages);
  const f = useFormat();
  const may = useMay();
  const rule = useRule();
  const [doing, setDoing] = useState<Doing>();
  const loaded = useApi("/api/v1/limits/rules", {}, { every: 5000 });
  const close = () => setDoing(undefined);
  return (
    <div className="flex flex-col gap-3">
      {may("operate") && (
        <Button className="self-end" onClick={() => setDoing({ what: "set" })}>
          <Plus aria-hidden className="size-4" />
          {t("setRule")}
        </Button>
      )}
      <Show of={loaded}>
        {({ rules }) =>
          rules && rules.length > 0 ? (
            <Table label={t("rules")} columns={columnsOf(t, f, rule, may("operate"), setDoing)} rows={rules} rowID={(r) => `${r.limit}\n${r.group ?? ""}`} />
          ) : (
            <EmptyState title={t("noRules")}>
              <p>{t("noRulesText")}</p>
              <Command text="ferry limit rule set user --limit 20 --window 10s --reason launch" />
            </EmptyState>
          )
        }
      </Show>
      {doing?.what === "set" && <SetRule {...(doing.rule && { of: doing.rule })} onClose={close} />}
      {doing?.what === "clear" && <Clear rule={doing.rule} onClose={close} />}
    </div>
  );
}

function Clear({ rule, onClose }: { rule: Rule; onClose: () => void }) {
  const t = useText(messages);
  const clear = useAct("delete", "/api/v1/limits/{limit}/rule");
  const { limit, group } = rule;
  return (
    <Because
      title={t("clearRuleTitle", { limit: [limit, group].filter(Boolean).join(" · ") })}
      text={t("clearRuleText")}
      action={t("clearRule")}
      busy={clear.isPending}
      onConfirm={(reason) => clear.mutate({ path: { limit }, query: { group, reason } }, tell(t("ruleCleared", { limit }), onClose))}
      onClose={onClose}
    />
  );
}

function columnsOf(t: Text<keyof typeof en>, f: Format, text: (r: Schemas["Rule"]) => string, may: boolean, act: (d: Doing) => void): Column<Rule>[] {
  return [
    { id: "limit", header: t("limit"), cell: (row) => <span className="font-medium">{row.limit}</span> },
    { id: "group", header: t("group"), cell: (row) => row.group || t("everyKey") },
    { id: "rule", header: t("rule"), cell: (row) => text(row.rule) },
    { id: "penalty", header: t("penalty"), cell: ({ rule: { penalty: p } }) => p && t("penaltyText", { after: p.after ?? 0, block: f.duration(p.block) }) },
    { id: "at", header: t("since"), cell: (row) => f.time(row.at) },
    { id: "who", header: t("who"), cell: (row) => row.actor },
    { id: "reason", header: t("reason"), cell: (row) => row.reason },
    {
      id: "actions",
      header: t("actions"),
      cell: (rule) =>
        may && (
          <span className="inline-flex gap-1">
            <Button look="bare" onClick={() => act({ what: "set", rule })}>
              {t("change")}
            </Button>
            <Button look="bare" onClick={() => act({ what: "clear", rule })}>
              {t("clearRule")}
            </Button>
          </span>
        ),
    },
  ];
}
