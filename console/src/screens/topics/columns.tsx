import type { Schemas } from "@/api/client";
import type { Format } from "@/i18n/format";
import type { Text } from "@/i18n/text";
import { seconds } from "@/lib/duration";
import { whyTopic } from "@/lib/why";
import { TopicLink } from "@/parts/topic/TopicLink";
import { WhyBadge } from "@/parts/why/Why";
import { numberColumn } from "@/ui/columns";
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
  const count = (id: Counts) => numberColumn<Row>({ id, header: t(id), of: (row) => row[id], write: f.compact, bad: id === "dead" });
  const rate = (id: "in" | "out") => numberColumn<Row>({ id, header: t(id), of: (row) => row[id], write: f.rate });
  return [
    { id: "topic", header: t("topic"), of: (row) => row.topic, cell: (row) => <TopicLink topic={row.topic} /> },
    { id: "state", header: t("state"), of: (row) => whyTopic(row).state, cell: (row) => <WhyBadge why={whyTopic(row)} /> },
    count("ready"),
    count("inflight"),
    count("waiting"),
    count("delayed"),
    count("dead"),
    rate("in"),
    rate("out"),
    numberColumn({ id: "oldest", header: t("oldest"), of: (row) => seconds(row.oldest), write: f.duration }),
    numberColumn({ id: "groups", header: t("groups"), of: (row) => row.groups?.length ?? 0, write: f.number }),
  ];
}
