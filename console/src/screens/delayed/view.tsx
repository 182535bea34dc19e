import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useLanguage, useText } from "@/i18n/text";
import { Head } from "@/ui/Field";
import { Show } from "@/ui/States";
import { Tabs } from "@/ui/Tabs";
import { messages } from "./messages";
import { Delayed } from "./Delayed";
import { Schedules } from "./Schedules";
import { route, screen, tabs } from "./screen";

const mostTopics = 500;

/** DelayedView shows what is not due yet: messages, and the schedules that publish some. */
export function DelayedView() {
  const t = useText(messages);
  const shown = useLanguage();
  const [{ tab = "messages" }, setFilter] = useFilter(route.useSearch());
  const topics = useApi("/api/v1/topics", { query: { limit: mostTopics } }, { on: "topics", every: 5000 });
  const contents = {
    messages: <Show of={topics}>{({ topics: all }) => <Delayed topics={all ?? []} />}</Show>,
    schedules: <Schedules />,
  };
  return (
    <div className="flex flex-col gap-3">
      <Head title={screen.title[shown]} />
      <Tabs
        value={tab}
        onChange={(value) => setFilter({ tab: tabs.find((known) => known === value) })}
        tabs={tabs.map((value) => ({ value, label: t(value), content: contents[value] }))}
      />
    </div>
  );
}
