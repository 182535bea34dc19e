import { useMay, useSession } from "@/api/session";
import { useFilter } from "@/app/filter";
import { theme, themes } from "@/app/theme";
import { useFormat } from "@/i18n/format";
import { choice, languages } from "@/i18n/language";
import { useLanguage, useText } from "@/i18n/text";
import { useStore } from "@/lib/store";
import { Entries, Entry } from "@/ui/Entries";
import { useWords } from "@/parts/words/words";
import { Head, Panel } from "@/ui/Field";
import { Select } from "@/ui/Input";
import { Tabs } from "@/ui/Tabs";
import { Masks } from "./Masks";
import { messages } from "./messages";
import { route, screen, tabs } from "./screen";
import { Tokens } from "./Tokens";
import { Users } from "./Users";

/** SettingsView shows who looks at what, and sets how it looks and which programs may log in. */
export function SettingsView() {
  const t = useText(messages);
  const shown = useLanguage();
  const may = useMay();
  const [{ tab = "about" }, setFilter] = useFilter(route.useSearch());
  const contents = { about: <About />, look: <Look />, access: <Access /> };
  const offered = tabs.filter((value) => value !== "access" || may("admin"));
  return (
    <div className="flex flex-col gap-3">
      <Head title={screen.title[shown]} />
      <Tabs
        value={offered.includes(tab) ? tab : "about"}
        onChange={(value) => setFilter({ tab: tabs.find((known) => known === value) })}
        tabs={offered.map((value) => ({ value, label: t(value), content: contents[value] }))}
      />
    </div>
  );
}

function About() {
  const t = useText(messages);
  const f = useFormat();
  const { broker, identity } = useSession();
  const { capabilities: can, usage } = broker;
  const say = useWords();
  const word = (is: boolean) => t(is ? "yes" : "no");
  return (
    <div className="grid gap-3 lg:grid-cols-3">
      <Panel title={t("server")}>
        <Entries>
          <Entry name={t("version")}>{broker.version}</Entry>
          {broker.environment && <Entry name={t("environment")}>{broker.environment}</Entry>}
          <Entry name={t("guards")}>{word(broker.guards)}</Entry>
          <Entry name={t("audit")}>{word(broker.actions)}</Entry>
        </Entries>
      </Panel>
      <Panel title={t("broker")}>
        <Entries>
          <Entry name={t("driver")}>{broker.driver}</Entry>
          <Entry name={t("durability")}>{say("durability", can.durability)}</Entry>
          <Entry name={t("counts")}>{say("counts", can.counts)}</Entry>
          <Entry name={t("history")}>{word(can.history !== "none")}</Entry>
          <Entry name={t("maxBody")}>{f.bytes(can.max_body)}</Entry>
          {usage.memory > 0 && <Entry name={t("memory")}>{f.bytes(usage.memory)}</Entry>}
          {usage.disk > 0 && <Entry name={t("disk")}>{f.bytes(usage.disk)}</Entry>}
          {usage.connections > 0 && <Entry name={t("connections")}>{f.number(usage.connections)}</Entry>}
        </Entries>
      </Panel>
      <Panel title={t("you")}>
        <Entries>
          <Entry name={t("name")}>{identity.name}</Entry>
          {identity.scopes?.map((s) => (
            <Entry key={s.scope} name={s.scope}>
              {s.topics && s.topics.length > 0 ? s.topics.join(", ") : t("onAll")}
            </Entry>
          ))}
        </Entries>
      </Panel>
    </div>
  );
}

const languageNames = { en: "English", "zh-CN": "简体中文" };

function Look() {
  const t = useText(messages);
  const look = useStore(theme);
  const chosen = useStore(choice);
  return (
    <div className="flex max-w-sm flex-col gap-3">
      <Select
        label={t("theme")}
        value={look}
        choices={themes.map((value) => ({ value, label: t(value) }))}
        onChange={(value) => theme.set(themes.find((name) => name === value) ?? "system")}
      />
      <Select
        label={t("language")}
        value={chosen}
        choices={[{ value: "system", label: t("system") }, ...languages.map((value) => ({ value, label: languageNames[value] }))]}
        onChange={(value) => choice.set(languages.find((name) => name === value) ?? "system")}
      />
      <p className="text-muted">{t("lookText")}</p>
    </div>
  );
}

function Access() {
  return (
    <div className="flex flex-col gap-3">
      <Users />
      <Tokens />
      <Masks />
    </div>
  );
}
