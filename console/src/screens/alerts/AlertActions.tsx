import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useMay } from "@/api/session";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import type { Silenced } from "./Silence";

/** AlertActions says that somebody takes care of an alert, or keeps its notices back. */
export function AlertActions({ of, onSilence }: { of: Schemas["Alert"]; onSilence: (s: Silenced) => void }) {
  const t = useText(messages);
  const may = useMay();
  const acknowledge = useAct("post", "/api/v1/alerts/{rule}/{subject}/ack");
  const { rule, subject } = of;
  if (!may("operate") || of.status === "resolved") return null;
  return (
    <span className="inline-flex gap-1">
      {of.status === "firing" && !of.acknowledged && (
        <Button
          look="bare"
          disabled={acknowledge.isPending}
          onClick={() => acknowledge.mutate({ path: { rule, subject }, body: {} }, tell(t("acknowledgedNow", { rule, subject })))}
        >
          {t("acknowledge")}
        </Button>
      )}
      <Button look="bare" onClick={() => onSilence({ rule, subject })}>
        {t("silence")}
      </Button>
    </span>
  );
}
