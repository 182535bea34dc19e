import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { StateBadge } from "@/parts/messages/state";
import { useWords } from "@/parts/words/words";
import { Copy } from "@/ui/Copy";
import { Head, Panel } from "@/ui/Field";
import { EmptyState, Show } from "@/ui/States";
import { Actions } from "./Actions";
import { Body } from "./Body";
import { CopyAs } from "./CopyAs";
import { messages } from "./messages";
import { route } from "./screen";
import { Timeline } from "./Timeline";

type Message = Schemas["Message"];

const refresh = 1000;

/** MessageView is everything that is known of one message: in each group, what happened to it and what it says. */
export function MessageView() {
  const t = useText(messages);
  const { topic, id } = route.useParams();
  const loaded = useApi("/api/v1/topics/{topic}/messages/{id}", { path: { topic, id } }, { on: { topic }, every: refresh });
  return (
    <div className="flex flex-col gap-3">
      <nav className="text-muted">
        <Link to="/messages" className="inline-block py-0.5 underline">
          {t("messages")}
        </Link>
        {" / "}
        <Link to="/topics/$topic" params={{ topic }} className="inline-block py-0.5 break-all underline">
          {topic}
        </Link>
      </nav>
      {loaded.problem?.status === 404 ? <Gone id={id} seen={loaded.data !== undefined} /> : <Show of={loaded}>{({ messages: views }) => <Views id={id} views={views ?? []} />}</Show>}
    </div>
  );
}

/** Gone says why a message is not here: one that was seen here has most likely been handled. */
function Gone({ id, seen = false }: { id: string; seen?: boolean }) {
  const t = useText(messages);
  return (
    <>
      <Head title={<span className="font-mono">{id}</span>} />
      <div role="alert">
        <EmptyState title={t(seen ? "over" : "gone")}>
          <p>{t(seen ? "overText" : "goneText")}</p>
          <p>
            <Link to="/messages" search={{ q: id } as never} className="text-accent underline">
              {t("everywhere")}
            </Link>
          </p>
        </EmptyState>
      </div>
    </>
  );
}

function Views({ id, views }: { id: string; views: Message[] }) {
  const t = useText(messages);
  const [{ group }, setFilter] = useFilter(route.useSearch());
  const shown = views.find((v) => v.group === group) ?? views[0];
  if (!shown) return <Gone id={id} />;
  return (
    <>
      <Head title={<span className="font-mono">{id}</span>} note={<Copy text={id} />}>
        <Actions message={shown} />
      </Head>
      {views.length > 1 && (
        <div role="group" aria-label={t("groups")} className="flex flex-wrap gap-2">
          {views.map((v) => (
            <button
              key={v.group ?? ""}
              type="button"
              aria-pressed={v === shown}
              className="flex items-center gap-2 rounded border border-line px-2 py-1 aria-pressed:bg-raised"
              onClick={() => setFilter({ group: v.group })}
            >
              {v.group ?? t("noGroup")} <StateBadge state={v.state} />
            </button>
          ))}
        </div>
      )}
      <div className="grid items-start gap-3 xl:grid-cols-2">
        <div className="flex min-w-0 flex-col gap-3">
          <Facts message={shown} />
          <Panel title={t("timeline")}>
            <Timeline message={shown} />
          </Panel>
        </div>
        <div className="flex min-w-0 flex-col gap-3">
          <Body message={shown} />
          <Headers message={shown} />
          <CopyAs message={shown} />
        </div>
      </div>
    </>
  );
}

function Facts({ message: m }: { message: Message }) {
  const t = useText(messages);
  const f = useFormat();
  const word = useWords();
  const attempt = m.dead?.attempts ?? m.attempt; // of a dead one, the last that was made
  return (
    <Panel title={t("facts")}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <Entry name={t("state")}>
          <StateBadge state={m.state} />
        </Entry>
        <Entry name={t("group")}>{m.group}</Entry>
        <Entry name={t("key")}>{m.key}</Entry>
        <Entry name={t("priority")}>{word("priority", m.priority)}</Entry>
        <Entry name={t("attempt")}>{attempt && (m.max_attempts ? t("of", { attempt, most: m.max_attempts }) : f.number(attempt))}</Entry>
        <Entry name={t("expires")}>{m.expires_at && f.time(m.expires_at)}</Entry>
        <Entry name={t("dedup")}>{m.dedup_id}</Entry>
        <Entry name={t("instance")}>{m.instance}</Entry>
        <Entry name={t("ref")}>{m.ref && <span className="font-mono">{m.ref}</span>}</Entry>
        <Entry name={t("problem")}>{m.problem && <span className="text-bad">{m.problem}</span>}</Entry>
        <Entry name={t("recovery")}>{word("recovery", m.dead?.recovery)}</Entry>
        <Entry name={t("nextRetry")}>{m.dead?.next_retry_at && f.time(m.dead.next_retry_at)}</Entry>
        <Entry name={t("rounds")}>{m.dead?.rounds ? f.number(m.dead.rounds) : undefined}</Entry>
        <Entry name={t("fingerprint")}>
          {m.dead?.fingerprint && (
            <Link to="/dead" search={{ topic: m.topic, kind: m.dead.fingerprint } as never} className="break-words underline">
              {m.dead.fingerprint}
            </Link>
          )}
        </Entry>
      </dl>
    </Panel>
  );
}

/** Entry is a name and a value; without one it is left out. */
function Entry({ name, children }: { name: string; children: ReactNode }) {
  if (children === undefined || children === null || children === "" || children === 0) return null;
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0 wrap-anywhere">{children}</dd>
    </>
  );
}

function Headers({ message: m }: { message: Message }) {
  const t = useText(messages);
  const headers = [...Object.entries(m.headers ?? {}), ...Object.entries(m.headers_base64 ?? {})];
  return (
    <Panel title={t("headers")}>
      {headers.length === 0 ? (
        <p className="text-muted">{t("noHeaders")}</p>
      ) : (
        <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 font-mono">
          {headers.map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted">{name}</dt>
              <dd className="min-w-0 wrap-anywhere">{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </Panel>
  );
}
