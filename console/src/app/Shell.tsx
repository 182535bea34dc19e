import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { Command, Keyboard, LogOut, Menu, Pause, Play } from "lucide-react";
import { useState } from "react";
import { loggedOut, logOut } from "@/api/client";
import { connection } from "@/api/connection";
import { paused } from "@/api/live";
import { useApi } from "@/api/query";
import { SessionContext, useMay, useSession } from "@/api/session";
import { choice, languages } from "@/i18n/language";
import { useLanguage, useText } from "@/i18n/text";
import { useStore } from "@/lib/store";
import { LoginDialog } from "@/screens/login/LoginDialog";
import { LoginPage } from "@/screens/login/LoginPage";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Show } from "@/ui/States";
import { Toasts } from "@/ui/Toast";
import { Banner } from "./Banner";
import { Help } from "./Help";
import { useKeys } from "./keys";
import { messages } from "./messages";
import { Palette } from "./Palette";
import type { Screen } from "./screen";
import { screens } from "./screens";
import { theme, themes } from "./theme";

/** Shell is around every screen. Without a session it shows the login instead. */
export function Shell() {
  const identity = useApi("/api/v1/identity", {});
  const broker = useApi("/api/v1/broker", {}, { enabled: identity.data !== undefined });
  const nobody = useStore(loggedOut);
  if (nobody && !identity.data) return <LoginPage />;
  return (
    <Show of={identity}>
      {(who) => (
        <Show of={broker}>
          {(what) => (
            <SessionContext value={{ identity: who, broker: what }}>
              <Frame />
              <LoginDialog open={nobody} />
            </SessionContext>
          )}
        </Show>
      )}
    </Show>
  );
}

/** useOffered are the screens that the session has. */
function useOffered(): Screen[] {
  const session = useSession();
  const may = useMay();
  return screens().filter((s) => (!s.scope || may(s.scope)) && (s.offered?.(session) ?? true));
}

function Frame() {
  const t = useText(messages);
  const shown = useLanguage();
  const navigate = useNavigate();
  const offered = useOffered();
  const [help, setHelp] = useState(false);
  const [palette, setPalette] = useState(false);
  const [menu, setMenu] = useState(false);
  const stale = useStore(connection) !== undefined;
  useKeys([
    { keys: "?", label: t("help"), run: () => setHelp(true) },
    { keys: ":", label: t("palette"), run: () => setPalette(true) },
    { keys: ".", label: t("pause"), run: () => paused.set(!paused.get()) },
    { keys: "/", label: t("focusSearch"), run: () => document.querySelector<HTMLElement>("[data-search]")?.focus() },
    { keys: "j", label: t("focusTable"), run: () => document.querySelector<HTMLElement>("[data-table]")?.focus() },
    ...offered.flatMap((s) => (s.nav ? [{ keys: s.nav.keys, label: s.title[shown], run: () => void navigate({ to: s.nav?.to ?? "/" }) }] : [])),
  ]);
  return (
    <div className="flex min-h-dvh flex-col">
      <a href="#content" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-surface focus:p-2">
        {t("skip")}
      </a>
      <Banner />
      <Bar onMenu={() => setMenu(!menu)} onHelp={() => setHelp(true)} onPalette={() => setPalette(true)} menu={menu} />
      <div className="flex grow">
        <Navigation screens={offered} open={menu} onGo={() => setMenu(false)} />
        <main id="content" tabIndex={-1} className={`min-w-0 grow p-3 sm:p-4 ${stale ? "outline-2 -outline-offset-2 outline-warn outline-dashed grayscale" : "outline-none"}`}>
          <Outlet />
        </main>
      </div>
      <Help open={help} onClose={() => setHelp(false)} />
      <Palette open={palette} onClose={() => setPalette(false)} screens={offered} />
      <Toasts />
    </div>
  );
}

interface BarProps {
  onMenu: () => void;
  onHelp: () => void;
  onPalette: () => void;
  menu: boolean;
}

function Bar({ onMenu, onHelp, onPalette, menu }: BarProps) {
  const t = useText(messages);
  const { broker } = useSession();
  return (
    <header className="sticky top-0 z-30 flex min-h-11 items-center gap-1.5 border-b border-line bg-surface px-2 sm:px-3">
      <Button look="bare" className="lg:hidden" aria-label={t("menu")} aria-expanded={menu} onClick={onMenu}>
        <Menu aria-hidden className="size-4" />
      </Button>
      <Link to="/" aria-label="Ferry 摆渡" className="flex shrink-0 items-center gap-2 font-semibold">
        <img src="/icon.svg" alt="" width="22" height="22" /> <span className="hidden sm:inline">Ferry 摆渡</span>
      </Link>
      <span className="hidden text-muted sm:inline">{broker.driver}</span>
      {broker.environment && <Environment name={broker.environment} />}
      <div className="ml-auto flex items-center gap-0.5">
        <LiveButton />
        <Button look="bare" aria-label={t("palette")} title={t("palette")} onClick={onPalette}>
          <Command aria-hidden className="size-4" />
        </Button>
        <Button look="bare" aria-label={t("help")} title={t("help")} onClick={onHelp}>
          <Keyboard aria-hidden className="size-4" />
        </Button>
      </div>
    </header>
  );
}

/** Environment names the installation; nobody should take production for anything else. */
function Environment({ name }: { name: string }) {
  return <Badge tone={/^prod/i.test(name) ? "bad" : "info"}>{name}</Badge>;
}

function LiveButton() {
  const t = useText(messages);
  const stopped = useStore(paused);
  const Icon = stopped ? Play : Pause;
  return (
    <Button look="bare" aria-pressed={stopped} title={t(stopped ? "resume" : "pause")} onClick={() => paused.set(!stopped)}>
      <Icon aria-hidden className="size-4" />
      {t(stopped ? "paused" : "live")}
    </Button>
  );
}

function Navigation({ screens: all, open, onGo }: { screens: Screen[]; open: boolean; onGo: () => void }) {
  const t = useText(messages);
  const shown = useLanguage();
  return (
    <nav
      aria-label={t("navigation")}
      className={`${open ? "fixed inset-x-0 top-11 bottom-0 z-20 flex" : "hidden"} w-full flex-col gap-0.5 overflow-y-auto border-r border-line bg-surface p-2 lg:sticky lg:top-11 lg:flex lg:h-[calc(100dvh-2.75rem)] lg:w-60 lg:shrink-0`}
    >
      {all.map(({ nav, title }) => {
        if (!nav) return null;
        return (
          <Link
            key={nav.to}
            to={nav.to}
            onClick={onGo}
            activeOptions={{ exact: nav.to === "/", includeSearch: false }}
            activeProps={{ className: "bg-raised font-medium text-text", "aria-current": "page" }}
            inactiveProps={{ className: "text-muted" }}
            className="flex min-h-8 items-center gap-2 rounded px-2 hover:bg-raised hover:text-text"
          >
            <nav.icon aria-hidden className="size-4 shrink-0" />
            {title[shown]}
          </Link>
        );
      })}
      <Preferences />
    </nav>
  );
}

const languageNames = { en: "English", "zh-CN": "简体中文" };
const fieldLook = "w-full rounded border border-line bg-surface px-1 py-1 text-text";

/** Preferences are kept in the browser; everything else in the broker. */
function Preferences() {
  const t = useText(messages);
  const { identity } = useSession();
  const look = useStore(theme);
  const chosen = useStore(choice);
  return (
    <div className="mt-auto flex flex-col gap-2 border-t border-line px-2 pt-3 text-muted">
      <label>
        {t("theme")}
        <select className={fieldLook} value={look} onChange={(e) => theme.set(e.target.value as typeof look)}>
          {themes.map((name) => (
            <option key={name} value={name}>
              {t(name)}
            </option>
          ))}
        </select>
      </label>
      <label>
        {t("language")}
        <select className={fieldLook} value={chosen} onChange={(e) => choice.set(e.target.value as typeof chosen)}>
          <option value="system">{t("system")}</option>
          {languages.map((name) => (
            <option key={name} value={name} lang={name}>
              {languageNames[name]}
            </option>
          ))}
        </select>
      </label>
      <a className="underline" href="/docs">
        {t("api")}
      </a>
      <div className="flex items-center justify-between gap-1">
        <span className="truncate" title={identity.name}>
          {identity.name}
        </span>
        <Button look="bare" aria-label={t("logOut")} title={t("logOut")} onClick={() => void logOut().then(() => location.assign("/"))}>
          <LogOut aria-hidden className="size-4" />
        </Button>
      </div>
    </div>
  );
}
