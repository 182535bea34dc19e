import { Link } from "@tanstack/react-router";
import type { Schemas } from "@/api/client";
import type { Format } from "@/i18n/format";
import type { Text } from "@/i18n/text";
import { seconds } from "@/lib/duration";
import { whyTopic } from "@/lib/why";
import { WhyBadge } from "@/parts/why/Why";
import type { Column } from "@/ui/Table";
import type { en } from "./messages.en";

type Topic = Schemas["Topic"];

/** Row is a topic with its rates. */
export interface Row extends Topic {
  in: number;
  out: number;
}

type Counts = "ready" | "inflight" | "waiting" | "delayed" | "dead";

/** columnsOf are the columns of the table. */
export function columnsOf(t: Text<keyof typeof en>, f: Format): Column<Row>[] {
  const count = (id: Counts): Column<Row> => ({
    id,
    header: t(id),
    accessorFn: (row) => row[id],
    cell: ({ row }) => <Count n={row.original[id]} text={f.compact(row.original[id])} bad={id === "dead"} />,
    meta: { right: true },
  });
  const rate = (id: "in" | "out"): Column<Row> => ({
    id,
    header: t(id),
    accessorFn: (row) => row[id],
    cell: ({ row }) => <Count n={row.original[id]} text={f.rate(row.original[id])} />,
    meta: { right: true },
  });
  return [
    { id: "topic", header: t("topic"), accessorFn: (row) => row.topic, cell: ({ row }) => <Name topic={row.original.topic} /> },
    { id: "state", header: t("state"), accessorFn: (row) => whyTopic(row).state, cell: ({ row }) => <WhyBadge why={whyTopic(row.original)} /> },
    count("ready"),
    count("inflight"),
    count("waiting"),
    count("delayed"),
    count("dead"),
    rate("in"),
    rate("out"),
    {
      id: "oldest",
      header: t("oldest"),
      accessorFn: (row) => seconds(row.oldest),
      cell: ({ row }) => <Count n={seconds(row.original.oldest)} text={f.duration(row.original.oldest)} />,
      meta: { right: true },
    },
    {
      id: "groups",
      header: t("groups"),
      accessorFn: (row) => row.groups?.length ?? 0,
      cell: ({ row }) => f.number(row.original.groups?.length ?? 0),
      meta: { right: true },
    },
  ];
}

function Name({ topic }: { topic: string }) {
  return (
    <Link to="/topics/$topic" params={{ topic }} className="inline-block py-0.5 font-medium text-accent hover:underline">
      {topic}
    </Link>
  );
}

/** Count greys a zero, so that what is there stands out. */
function Count({ n, text, bad = false }: { n: number; text: string; bad?: boolean }) {
  const colour = n === 0 ? "text-muted" : bad ? "font-medium text-bad" : "";
  return <span className={colour}>{text}</span>;
}
