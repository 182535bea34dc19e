import type { Schemas } from "@/api/client";

type Rule = Schemas["Rule"];

/** Draft is a rule as it is typed: empty is what is left out. */
export interface Draft {
  unlimited: boolean;
  limit: string;
  window: string;
  burst: string;
  after: string;
  block: string;
  factor: string;
  max: string;
  history: string;
}

/** draftOf is a rule to be changed, or the beginning of one. */
export function draftOf(rule?: Rule): Draft {
  const { penalty } = rule ?? {};
  const text = (n: number | undefined) => (n ? String(n) : "");
  return {
    unlimited: rule?.unlimited ?? false,
    limit: text(rule?.limit),
    window: rule?.window ?? (rule ? "" : "1m"),
    burst: text(rule?.burst),
    after: text(penalty?.after),
    block: penalty?.block ?? "",
    factor: text(penalty?.factor),
    max: penalty?.max ?? "",
    history: penalty?.history ?? "",
  };
}

/** ruleOf is the rule that was typed. It is set whole: one without a penalty has none. */
export function ruleOf(d: Draft): Rule {
  if (d.unlimited) return { unlimited: true };
  const number = (name: "limit" | "burst") => (d[name] ? { [name]: Number(d[name]) } : {});
  const penalty = {
    ...(d.after && { after: Number(d.after) }),
    ...(d.block && { block: d.block }),
    ...(d.factor && { factor: Number(d.factor) }),
    ...(d.max && { max: d.max }),
    ...(d.history && { history: d.history }),
  };
  return { ...number("limit"), ...number("burst"), ...(d.window && { window: d.window }), ...(Object.keys(penalty).length > 0 && { penalty }) };
}
