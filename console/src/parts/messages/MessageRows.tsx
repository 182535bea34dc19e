import { useNavigate, useRouter } from "@tanstack/react-router";
import { useMemo, type MouseEvent } from "react";
import type { Schemas } from "@/api/client";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { Table, type Column } from "@/ui/Table";
import { messages } from "./messages";
import { StateBadge } from "./state";

type Message = Schemas["Message"];

/** rowID tells rows apart: a message is in several groups, and what cannot be read has no id. */
export function rowID(m: Message): string {
  return [m.topic, m.group, m.id, m.ref, m.found_at].join(" ");
}

/**
 * MessageLink leads to everything about a message. One that cannot be read has no id, and no such page. It is no Link of the router:
 * a table that is scrolled draws some fifty of them at once, and each of those looks the whole place up.
 */
export function MessageLink({ message }: { message: Pick<Message, "topic" | "group" | "id" | "ref"> }) {
  const router = useRouter();
  const { topic, id, group } = message;
  if (!id) return <span className="font-mono">{message.ref}</span>;
  const search = group ? { group } : {};
  const open = (e: MouseEvent) => {
    if (e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return; // the browser's own
    e.preventDefault();
    void router.navigate({ to: "/messages/$topic/$id", params: { topic, id }, search: search as never });
  };
  const href = `/messages/${encodeURIComponent(topic)}/${encodeURIComponent(id)}${router.options.stringifySearch(search)}`;
  return (
    <a href={href} onClick={open} className="block truncate py-0.5 font-mono text-accent hover:underline">
      {id}
    </a>
  );
}

interface Props {
  rows: Message[];
  label: string;
  /** error shows what letters died of, and when, instead of states. */
  error?: boolean;
  /** oneTopic leaves the topic out, where the place says it. */
  oneTopic?: boolean;
}

/** MessageRows are messages as links to their pages. */
export function MessageRows({ rows, label, error = false, oneTopic = false }: Props) {
  const t = useText(messages);
  const f = useFormat();
  const navigate = useNavigate();
  const columns = useMemo<Column<Message>[]>(
    () => [
      { id: "id", header: t("id"), cell: (row) => <MessageLink message={row} /> },
      ...(oneTopic ? [] : [{ id: "topic", header: t("topic"), cell: (row) => row.topic } as Column<Message>]),
      ...(error
        ? [{ id: "error", header: t("error"), cell: (row) => <ErrorText message={row} /> } as Column<Message>]
        : [{ id: "state", header: t("state"), cell: (row) => <StateBadge state={row.state} /> } as Column<Message>]),
      { id: "group", header: t("group"), cell: (row) => row.group },
      { id: "key", header: t("key"), cell: (row) => row.key },
      { id: "attempt", header: t("attempt"), cell: (row) => row.dead?.attempts ?? row.attempt ?? "", right: true },
      {
        id: "time",
        header: t(error ? "died" : "published"),
        cell: (row) => f.time(error ? (row.dead?.died_at ?? row.found_at) : row.published_at),
      },
      { id: "body", header: t("body"), cell: (row) => <span className="font-mono">{row.body?.slice(0, 200)}</span> },
    ],
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [t("id"), error, oneTopic],
  );
  const open = ({ topic, id, group }: Message) => {
    if (id) void navigate({ to: "/messages/$topic/$id", params: { topic, id }, search: (group ? { group } : {}) as never });
  };
  return <Table label={label} columns={columns} rows={rows} rowID={rowID} onOpen={open} />;
}

function ErrorText({ message }: { message: Message }) {
  const text = message.dead?.error || message.dead?.reason || message.problem;
  return (
    <span className="font-mono text-bad" title={text}>
      {text}
    </span>
  );
}
