import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useStream } from "@/api/live";
import { useText } from "@/i18n/text";
import { MessageRows } from "@/parts/messages/MessageRows";
import { EmptyState } from "@/ui/States";
import { messages } from "./messages";

type Message = Schemas["Message"];

const mostRows = 1000;

/** Tail shows messages as they come, the newest first. It reads beside the groups, and takes nothing from them. */
export function Tail({ topic }: { topic: string }) {
  const t = useText(messages);
  const [rows, setRows] = useState<Message[]>([]);
  useStream("/api/v1/topics/{topic}/tail", { path: { topic } }, "message", (m: Message) => setRows((old) => [m, ...old].slice(0, mostRows)));
  if (rows.length === 0) {
    return (
      <EmptyState title={t("tailNone")}>
        <p>{t("tailText")}</p>
      </EmptyState>
    );
  }
  return (
    <>
      <p role="status" className="text-muted">
        {t("tailCount", { count: rows.length, most: mostRows })}
      </p>
      <MessageRows rows={rows} label={t("messages")} />
    </>
  );
}
