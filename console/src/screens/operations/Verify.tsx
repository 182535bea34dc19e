import { ShieldCheck } from "lucide-react";
import { useState } from "react";
import { ask } from "@/api/client";
import { Problem } from "@/api/problem";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { toast } from "@/ui/Toast";
import { messages } from "./messages";

/** Verify has the server check that no action was changed or taken away. */
export function Verify() {
  const t = useText(messages);
  const [busy, setBusy] = useState(false);
  const verify = async () => {
    setBusy(true);
    try {
      const { checked, problems } = await ask("get", "/api/v1/actions/verify", {});
      if (problems && problems.length > 0) toast(t("broken", { problem: problems.join("; ") }), false);
      else toast(t("whole", { count: checked }));
    } catch (p) {
      toast(p instanceof Problem ? p.detail : String(p), false);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button disabled={busy} onClick={() => void verify()}>
      <ShieldCheck aria-hidden className="size-4" />
      {t("verify")}
    </Button>
  );
}
