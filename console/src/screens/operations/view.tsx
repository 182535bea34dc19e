import { useMay, useSession } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useLanguage, useText } from "@/i18n/text";
import { Head } from "@/ui/Field";
import { Tabs } from "@/ui/Tabs";
import { Actions } from "./Actions";
import { messages } from "./messages";
import { Operations } from "./Operations";
import { route, screen, tabs } from "./screen";

/** OperationsView shows long work, and who did what. */
export function OperationsView() {
  const t = useText(messages);
  const shown = useLanguage();
  const may = useMay();
  const { broker } = useSession();
  const [{ tab = "operations" }, setFilter] = useFilter(route.useSearch());
  const contents = { operations: <Operations />, actions: <Actions /> };
  const offered = tabs.filter((value) => value !== "actions" || (broker.actions && may("admin")));
  return (
    <div className="flex flex-col gap-3">
      <Head title={screen.title[shown]} />
      <Tabs
        value={offered.includes(tab) ? tab : "operations"}
        onChange={(value) => setFilter({ tab: tabs.find((known) => known === value) })}
        tabs={offered.map((value) => ({ value, label: t(value), content: contents[value] }))}
      />
    </div>
  );
}
