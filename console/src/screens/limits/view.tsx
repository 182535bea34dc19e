import { useFilter } from "@/app/filter";
import { useLanguage, useText } from "@/i18n/text";
import { Head } from "@/ui/Field";
import { Tabs } from "@/ui/Tabs";
import { Breakers } from "./Breakers";
import { Changes } from "./Changes";
import { Check } from "./Check";
import { Keys } from "./Keys";
import { messages } from "./messages";
import { Rules } from "./Rules";
import { route, screen, tabs } from "./screen";

/** LimitsView shows whom limits and breakers keep out, and changes it. */
export function LimitsView() {
  const t = useText(messages);
  const shown = useLanguage();
  const [{ tab = "keys" }, setFilter] = useFilter(route.useSearch());
  const contents = { keys: <Keys />, rules: <Rules />, check: <Check />, breakers: <Breakers />, changes: <Changes /> };
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
