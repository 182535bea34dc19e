import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useMay } from "@/api/session";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { tell } from "@/ui/tell";
import { Because } from "./Because";
import { messages } from "./messages";
import { Override } from "./Override";

type Key = Schemas["LimitKey"];

/** KeyState is what holds for a key, in a word. */
export function KeyState({ of }: { of: Key }) {
  const t = useText(messages);
  if (of.block) return <Badge tone="bad">{t("blocked")}</Badge>;
  if (of.whitelisted) return <Badge tone="good">{t("whitelisted")}</Badge>;
  if (of.override) return <Badge tone="info">{t("overridden")}</Badge>;
  return null;
}

/** useRule writes a rule. */
export function useRule(): (rule: Schemas["Rule"] | undefined) => string {
  const t = useText(messages);
  const f = useFormat();
  return (rule) => {
    if (!rule) return t("noRule");
    if (rule.unlimited) return t("unlimited");
    const values = { limit: rule.limit ?? 0, window: f.duration(rule.window), burst: rule.burst ?? 0 };
    return rule.burst ? t("ruleBurst", values) : t("ruleText", values);
  };
}

/** KeyActions take back what holds for a key. */
export function KeyActions({ of }: { of: Key }) {
  const t = useText(messages);
  const may = useMay();
  const unblock = useAct("delete", "/api/v1/limits/{limit}/keys/{key}/block");
  const unlist = useAct("delete", "/api/v1/limits/{limit}/keys/{key}/whitelist");
  const [open, setOpen] = useState<"change" | "end">();
  const { key, limit } = of;
  if (!may("operate")) return null;
  const path = { limit, key };
  return (
    <span className="inline-flex gap-1">
      {of.block && (
        <Button look="bare" disabled={unblock.isPending} onClick={() => unblock.mutate({ path }, tell(t("unblocked", { key })))}>
          {t("unblock")}
        </Button>
      )}
      {of.whitelisted && (
        <Button look="bare" disabled={unlist.isPending} onClick={() => unlist.mutate({ path }, tell(t("unlisted", { key })))}>
          {t("unlist")}
        </Button>
      )}
      {of.override && (
        <>
          <Button look="bare" onClick={() => setOpen("change")}>
            {t("change")}
          </Button>
          <Button look="bare" onClick={() => setOpen("end")}>
            {t("endOverride")}
          </Button>
        </>
      )}
      {open === "change" && <Override of={of} onClose={() => setOpen(undefined)} />}
      {open === "end" && <EndOverride of={of} onClose={() => setOpen(undefined)} />}
    </span>
  );
}

function EndOverride({ of, onClose }: { of: Key; onClose: () => void }) {
  const t = useText(messages);
  const end = useAct("delete", "/api/v1/limits/{limit}/keys/{key}/override");
  const { key, limit } = of;
  return (
    <Because
      title={t("endOverrideTitle", { key })}
      text={t("endOverrideText", { limit })}
      action={t("endOverride")}
      busy={end.isPending}
      onConfirm={(reason) => end.mutate({ path: { limit, key }, query: { reason } }, tell(t("overrideEnded", { key }), onClose))}
      onClose={onClose}
    />
  );
}
