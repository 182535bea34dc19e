import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useFigures } from "@/api/figures";
import { useApi } from "@/api/query";
import { useMay, useSession } from "@/api/session";
import { useFormat } from "@/i18n/format";
import { useLanguage, useText } from "@/i18n/text";
import { whyTopic } from "@/lib/why";
import { WhyBadge, WhySentence } from "@/parts/why/Why";
import { useWords } from "@/parts/words/words";
import { Badge, type Tone } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Figure, Figures, Head, Panel } from "@/ui/Field";
import { Show } from "@/ui/States";
import { Charts } from "./Charts";
import { messages } from "./messages";
import { livePoint, type Point } from "./points";
import { sentenceOf, subjectOf, type Reason } from "./reason";
import { screen } from "./screen";
import { totalsOf } from "./totals";

const refresh = 5000;
const mostPoints = 360;
const mostProblems = 5;
const mostReasons = 6;

/** OverviewView says whether all is well, and where it is not. */
export function OverviewView() {
  const shown = useLanguage();
  const may = useMay();
  const { broker } = useSession();
  const all = may("view");
  return (
    <div className="flex flex-col gap-3">
      <Head title={screen.title[shown]} />
      {all && <Health />}
      <Live />
      <div className="grid gap-3 xl:grid-cols-2">
        <Problems />
        <BrokerCard />
        {may("admin") && broker.actions && <Actions />}
      </div>
    </div>
  );
}

const tones: Record<Schemas["Health"]["status"], Tone> = { healthy: "good", degraded: "warn", unhealthy: "bad" };

/** Health is the verdict, with its reasons. */
function Health() {
  const t = useText(messages);
  const health = useApi("/api/v1/health", {}, { on: "topics", every: refresh });
  return (
    <Show of={health}>
      {({ status, reasons }) => (
        <section aria-live="polite" className="rounded border border-line bg-surface px-3 py-2">
          <p className="flex flex-wrap items-center gap-2">
            <Badge tone={tones[status]}>{t(status)}</Badge>
            {t(`${status}.text`)}
          </p>
          <Reasons all={reasons ?? []} />
        </section>
      )}
    </Show>
  );
}

/** Reasons lists the first ones; all of them, where topics are many, would hide the rest of the screen. */
function Reasons({ all }: { all: Reason[] }) {
  const t = useText(messages);
  const [whole, setWhole] = useState(false);
  const shown = whole ? all : all.slice(0, mostReasons);
  return (
    <>
      <ul className="list-disc pl-6">
        {shown.map((r) => (
          <li key={[r.subject, r.code, r.instance].join(" ")} className="break-words">
            <span className="font-medium">{subjectOf(r, t)}</span>
            {t("colon")}
            <Sentence of={r} />
          </li>
        ))}
      </ul>
      {all.length > mostReasons && (
        <Button look="bare" onClick={() => setWhole(!whole)}>
          {whole ? t("fewerReasons") : t("allReasons", { count: all.length })}
        </Button>
      )}
    </>
  );
}

/** Sentence is a reason; one about dead letters leads to them. */
function Sentence({ of }: { of: Reason }) {
  const t = useText(messages);
  const f = useFormat();
  const text = sentenceOf(of, t, f);
  if (of.code !== "dead_letters") return text;
  return (
    <Link to="/dead" search={{ topic: of.topic, group: of.group } as never} className="text-accent underline">
      {text}
    </Link>
  );
}

/** Live shows the totals as the server sees them. */
function Live() {
  const t = useText(messages);
  const f = useFormat();
  const [points, setPoints] = useState<Point[]>([]);
  const figures = useFigures((now) => setPoints((old) => [...old, livePoint(now)].slice(-mostPoints)));
  return (
    <Show of={figures}>
      {({ queues }) => {
        const now = totalsOf(queues ?? []);
        return (
          <>
            <Figures>
              <Figure label={t("backlog")}>{f.compact(now.backlog)}</Figure>
              <Figure label={t("running")}>{f.compact(now.running)}</Figure>
              <Figure label={t("delayed")}>{f.compact(now.delayed)}</Figure>
              <Figure label={t("dead")} warn={now.dead > 0}>
                {now.dead > 0 ? (
                  <Link to="/dead" className="underline">
                    {f.compact(now.dead)}
                  </Link>
                ) : (
                  f.compact(now.dead)
                )}
              </Figure>
              <Figure label={t("oldest")}>{f.duration(now.oldest)}</Figure>
              <Workers />
            </Figures>
            <Charts live={points} />
          </>
        );
      }}
    </Show>
  );
}

function Workers() {
  const t = useText(messages);
  const f = useFormat();
  const may = useMay();
  const health = useApi("/api/v1/health", {}, { enabled: may("view") });
  if (!health.data) return null;
  return <Figure label={t("workers")}>{f.number(health.data.workers)}</Figure>;
}

/** Problems are the topics in which messages wait for something that does not come, or died. */
function Problems() {
  const t = useText(messages);
  const topics = useApi("/api/v1/topics", { query: { limit: 500 } }, { on: "topics", every: refresh });
  return (
    <Panel title={t("problems")}>
      <Show of={topics}>
        {({ topics: all }) => {
          if (!all?.length) return <NoTopics />;
          const found = all.filter((topic) => topic.dead > 0 || ["warn", "paused"].includes(whyTopic(topic).tone));
          if (found.length === 0) return <p className="text-muted">{t("noProblems")}</p>;
          const worst = found.sort((a, b) => b.dead + b.ready - a.dead - a.ready).slice(0, mostProblems);
          return (
            <ul className="flex flex-col divide-y divide-line">
              {worst.map((topic) => (
                <Problem key={topic.topic} topic={topic} />
              ))}
            </ul>
          );
        }}
      </Show>
    </Panel>
  );
}

function Problem({ topic }: { topic: Schemas["Topic"] }) {
  const t = useText(messages);
  const f = useFormat();
  const why = whyTopic(topic);
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 py-1.5">
      <Link to="/topics/$topic" params={{ topic: topic.topic }} className="font-medium break-all text-accent hover:underline">
        {topic.topic}
      </Link>
      <WhyBadge why={why} />
      {topic.dead > 0 && (
        <Link to="/dead" search={{ topic: topic.topic } as never} className="underline">
          <Badge tone="bad">
            {t("dead")}
            {t("colon")}
            {f.compact(topic.dead)}
          </Badge>
        </Link>
      )}
      <span className="text-muted">
        <WhySentence why={why} />
      </span>
    </li>
  );
}

function NoTopics() {
  const t = useText(messages);
  return (
    <div className="flex flex-col gap-2 text-muted">
      <p>{t("noTopics")}</p>
      <Command text={`ferry pub hello '{"name":"世界"}'`} />
    </div>
  );
}

function BrokerCard() {
  const t = useText(messages);
  const f = useFormat();
  const { broker } = useSession();
  const { usage } = broker;
  const word = useWords();
  const rows: [string, string][] = [
    [t("driver"), broker.driver],
    [t("durability"), word("durability", broker.capabilities.durability)],
    [t("version"), broker.version ?? ""],
    [t("memory"), usage.memory > 0 ? f.bytes(usage.memory) : ""],
    [t("disk"), usage.disk > 0 ? f.bytes(usage.disk) : ""],
  ];
  return (
    <Panel title={t("broker")}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        {rows
          .filter(([, value]) => value !== "")
          .map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-muted">{name}</dt>
              <dd className="break-words">{value}</dd>
            </div>
          ))}
      </dl>
    </Panel>
  );
}

function Actions() {
  const t = useText(messages);
  const f = useFormat();
  const actions = useApi("/api/v1/actions", { query: { limit: 8 } }, { every: 30000 });
  return (
    <Panel title={t("actions")}>
      <Show of={actions}>
        {({ actions: all }) =>
          all?.length ? (
            <ul className="flex flex-col gap-1">
              {all.map((a) => (
                <li key={a.sequence} className="flex flex-wrap gap-x-3">
                  <span className="text-muted">{f.ago(a.at)}</span>
                  <span>{a.who}</span>
                  <span className="font-mono">{a.what}</span>
                  <span className="break-all">{a.topic}</span>
                  {a.outcome !== "done" && <span className="text-warn">{a.outcome}</span>}
                </li>
              ))}
            </ul>
          ) : (
            <p className="text-muted">{t("noActions")}</p>
          )
        }
      </Show>
    </Panel>
  );
}
