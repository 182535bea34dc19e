import { useSession } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useLanguage, useText } from "@/i18n/text";
import { Head } from "@/ui/Field";
import { Tabs } from "@/ui/Tabs";
import { Alerts } from "./Alerts";
import { Channels } from "./Channels";
import { History } from "./History";
import { messages } from "./messages";
import { Notifications } from "./Notifications";
import { Rules } from "./Rules";
import { route, screen, tabs } from "./screen";
import { Silences } from "./Silences";

/** AlertsView shows what is wrong and who was told, and keeps people from being told too much. */
export function AlertsView() {
  const t = useText(messages);
  const shown = useLanguage();
  const { broker } = useSession();
  const [{ tab = "alerts" }, setFilter] = useFilter(route.useSearch());
  const contents = {
    alerts: <Alerts />,
    history: <History />,
    silences: <Silences />,
    rules: <Rules />,
    channels: <Channels />,
    notifications: <Notifications />,
  };
  const offered = tabs.filter((value) => value !== "rules" || broker.alerts);
  const go = (value: string) => setFilter({ tab: tabs.find((known) => known === value), q: undefined, rule: undefined, subject: undefined });
  return (
    <div className="flex flex-col gap-3">
      <Head title={screen.title[shown]} />
      <Tabs value={offered.includes(tab) ? tab : "alerts"} onChange={go} tabs={offered.map((value) => ({ value, label: t(value), content: contents[value] }))} />
    </div>
  );
}
