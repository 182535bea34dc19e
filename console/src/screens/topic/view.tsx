import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { whyTopic } from "@/lib/why";
import { MessageTable } from "@/parts/messages/MessageTable";
import { StateChoice } from "@/parts/messages/StateChoice";
import { WhyBadge, WhySentence } from "@/parts/why/Why";
import { Head } from "@/ui/Field";
import { Show } from "@/ui/States";
import { Tabs } from "@/ui/Tabs";
import { Actions } from "./Actions";
import { Config } from "./Config";
import { Groups } from "./Groups";
import { messages } from "./messages";
import { route, tabs } from "./screen";

const Charts = lazy(() => import("./Charts").then((m) => ({ default: m.Charts })));

const refresh = 1000;

/** TopicView shows everything about one topic. */
export function TopicView() {
  const t = useText(messages);
  const { topic } = route.useParams();
  const loaded = useApi("/api/v1/topics/{topic}", { path: { topic } }, { on: { topic }, every: refresh });
  return (
    <div className="flex flex-col gap-3">
      <nav className="text-muted">
        <Link to="/topics" className="inline-block py-0.5 underline">
          {t("topics")}
        </Link>
        {" / "}
        <span className="break-all">{topic}</span>
      </nav>
      <Show of={loaded}>{(data) => <Loaded topic={data} />}</Show>
    </div>
  );
}

function Loaded({ topic }: { topic: Schemas["Topic"] }) {
  const why = whyTopic(topic);
  return (
    <>
      <Head title={topic.topic} note={<WhyBadge why={why} />}>
        <Actions topic={topic} />
      </Head>
      <p className="text-muted">
        <WhySentence why={why} />
      </p>
      <Parts topic={topic} />
    </>
  );
}

/** Parts are the tabs. What is searched for stays when another one is opened. */
function Parts({ topic }: { topic: Schemas["Topic"] }) {
  const t = useText(messages);
  const f = useFormat();
  const [filter, setFilter] = useFilter(route.useSearch());
  const list = { topic: topic.topic, where: filter.where ?? "", onWhere: (where: string) => setFilter({ where: where || undefined }) };
  const contents = {
    charts: (
      <Suspense>
        <Charts topic={topic} />
      </Suspense>
    ),
    messages: (
      <div className="flex flex-col gap-2">
        <StateChoice value={filter.state} onChange={(state) => setFilter({ state })} />
        <MessageTable {...list} state={filter.state} />
      </div>
    ),
    groups: <Groups topic={topic} />,
    dead: <MessageTable {...list} state="dead" />,
    delayed: <MessageTable {...list} state="delayed" />,
    config: <Config topic={topic} />,
  };
  const counts: Partial<Record<(typeof tabs)[number], number>> = {
    groups: topic.groups?.length ?? 0,
    dead: topic.dead,
    delayed: topic.delayed,
  };
  return (
    <Tabs
      value={filter.tab ?? "charts"}
      onChange={(value) => setFilter({ tab: tabs.find((tab) => tab === value) })}
      tabs={tabs.map((value) => {
        const n = counts[value];
        return { value, label: t(value), count: n === undefined ? undefined : f.compact(n), content: contents[value] };
      })}
    />
  );
}
