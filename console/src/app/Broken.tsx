import type { ErrorComponentProps } from "@tanstack/react-router";
import { TriangleAlert } from "lucide-react";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { EmptyState } from "@/ui/States";
import { messages } from "./messages";

/** Broken is shown in place of a screen that cannot be drawn, or not loaded. What is around it goes on. */
export function Broken({ error }: ErrorComponentProps) {
  const t = useText(messages);
  return (
    <div role="alert">
      <EmptyState title={t("brokenTitle")} icon={TriangleAlert}>
        <p>{t("brokenText")}</p>
        <p className="font-mono break-words">{String(error)}</p>
        <p>
          <Button onClick={() => location.reload()}>{t("reload")}</Button>
        </p>
      </EmptyState>
    </div>
  );
}
