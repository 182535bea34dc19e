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

/** End is what holds for a key and is taken back, each with a reason. */
type End = "unblock" | "unlist" | "endOverride";

/** KeyActions take back what holds for a key. */
export function KeyActions({ of }: { of: Key }) {
  const t = useText(messages);
  const may = useMay();
  const [open, setOpen] = useState<"change" | End>();
  if (!may("operate")) return null;
  const close = () => setOpen(undefined);
  const ends: End[] = [...(of.block ? (["unblock"] as const) : []), ...(of.whitelisted ? (["unlist"] as const) : []), ...(of.override ? (["endOverride"] as const) : [])];
  return (
    <span className="inline-flex gap-1">
      {of.override && (
        <Button look="bare" onClick={() => setOpen("change")}>
          {t("change")}
        </Button>
      )}
      {ends.map((end) => (
        <Button key={end} look="bare" onClick={() => setOpen(end)}>
          {t(end)}
        </Button>
      ))}
      {open === "change" && <Override of={of} onClose={close} />}
      {open && open !== "change" && <TakeBack of={of} end={open} onClose={close} />}
    </span>
  );
}

const done = { unblock: "unblocked", unlist: "unlisted", endOverride: "overrideEnded" } as const;

/** TakeBack asks for the reason that the list of changes keeps. */
function TakeBack({ of: { key, limit }, end, onClose }: { of: Key; end: End; onClose: () => void }) {
  const t = useText(messages);
  const acts = {
    unblock: useAct("delete", "/api/v1/limits/{limit}/keys/{key}/block"),
    unlist: useAct("delete", "/api/v1/limits/{limit}/keys/{key}/whitelist"),
    endOverride: useAct("delete", "/api/v1/limits/{limit}/keys/{key}/override"),
  };
  const { mutate, isPending } = acts[end];
  return (
    <Because
      title={t(`${end}Title`, { key })}
      text={t(`${end}Text`, { limit })}
      action={t(end)}
      busy={isPending}
      onConfirm={(reason) => mutate({ path: { limit, key }, query: { reason } }, tell(t(done[end], { key }), onClose))}
      onClose={onClose}
    />
  );
}
