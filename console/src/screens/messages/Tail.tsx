import { useEffect, useRef, useState } from "react";
import type { Schemas } from "@/api/client";
import { useStream } from "@/api/live";
import { useText } from "@/i18n/text";
import { MessageRows } from "@/parts/messages/MessageRows";
import { EmptyState } from "@/ui/States";
import { messages } from "./messages";

type Message = Schemas["Message"];

/** Skipped is what the server says it did not show; more: there were others beside them, which nobody counted. */
interface Skipped {
  count: number;
  more?: boolean;
}

const mostRows = 1000;
const together = 200; // milliseconds in which messages are gathered, so that many of them are drawn at once

/** Tail shows messages as they come, the newest first. It reads beside the groups, and takes nothing from them. */
export function Tail({ topic }: { topic: string }) {
  const t = useText(messages);
  const rows = useTail(topic);
  const skipped = useSkipped(topic);
  const unseen = skipped && t(skipped.more ? "tailSkippedMore" : "tailSkipped", { count: skipped.count });
  if (rows.length === 0) {
    return (
      <EmptyState title={t("tailNone")}>
        <p>{t("tailText")}</p>
        {unseen && <p role="status">{unseen}</p>}
      </EmptyState>
    );
  }
  return (
    <>
      <p role="status" className="text-muted">
        {t("tailCount", { count: rows.length, most: mostRows })} {unseen}
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

/** useSkipped is what came and was not shown: the tail looks from time to time, and what was settled between two looks is gone. */
function useSkipped(topic: string): Skipped | undefined {
  const [all, setAll] = useState<Skipped>();
  useStream("/api/v1/topics/{topic}/tail", { path: { topic } }, "skipped", (some: Skipped) => {
    setAll((old) => ({ count: (old?.count ?? 0) + some.count, more: Boolean(old?.more) || Boolean(some.more) }));
  });
  return all;
}
