import { useEffect, useRef, useState } from "react";
import type { Schemas } from "@/api/client";
import { useStream } from "@/api/live";
import { useText } from "@/i18n/text";
import { MessageRows } from "@/parts/messages/MessageRows";
import { EmptyState } from "@/ui/States";
import { messages } from "./messages";

type Message = Schemas["Message"];

const mostRows = 1000;
const together = 200; // milliseconds in which messages are gathered, so that many of them are drawn at once

/** Tail shows messages as they come, the newest first. It reads beside the groups, and takes nothing from them. */
export function Tail({ topic }: { topic: string }) {
  const t = useText(messages);
  const rows = useTail(topic);
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

/** useTail is what has come since it began, the newest first. */
function useTail(topic: string): Message[] {
  const [rows, setRows] = useState<Message[]>([]);
  const fresh = useRef<Message[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useStream("/api/v1/topics/{topic}/tail", { path: { topic } }, "message", (message: Message) => {
    fresh.current.unshift(message);
    timer.current ??= setTimeout(() => {
      const some = fresh.current;
      [fresh.current, timer.current] = [[], undefined];
      setRows((old) => [...some, ...old].slice(0, mostRows));
    }, together);
  });
  return rows;
}
