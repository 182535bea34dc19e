import type { Schemas } from "@/api/client";
import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Chart } from "@/ui/Chart";
import { Panel } from "@/ui/Field";
import { messages } from "./messages";
import { route, spans } from "./screen";

type Point = Schemas["Point"];

const refresh = 2000;

/** Charts draw the rates of a topic, and what waits in its group with the most. */
export function Charts({ topic }: { topic: Schemas["Topic"] }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ span = "5m" }, setFilter] = useFilter(route.useSearch());
  const group = [...(topic.groups ?? [])].sort((a, b) => b.ready - a.ready)[0]?.group;
  const whole = usePoints(topic.topic, undefined, span);
  const points = usePoints(topic.topic, group, span);
  const title = (text: string) => (group ? `${text} · ${group}` : text);
  return (
    <div className="flex flex-col gap-3">
      <div className="flex gap-1" role="group" aria-label={t("span")}>
        {spans.map((s) => (
          <Button key={s} aria-pressed={s === span} look={s === span ? "plain" : "bare"} onClick={() => setFilter({ span: s })}>
            {t(s)}
          </Button>
        ))}
      </div>
      <div className="grid gap-3 xl:grid-cols-2">
        <Panel title={`${t("rates")} · ${t("in")}`}>
          <Chart label={t("in")} times={times(whole)} format={f.rate} lines={[{ name: t("in"), colour: "accent", values: whole.map((p) => p.in_per_second) }]} />
        </Panel>
        <Panel title={title(`${t("rates")} · ${t("out")}`)}>
          <Chart label={t("out")} times={times(points)} format={f.rate} lines={[{ name: t("out"), colour: "accent", values: points.map((p) => p.out_per_second) }]} />
        </Panel>
        <Panel title={title(t("backlog"))}>
          <Chart
            label={t("backlog")}
            times={times(points)}
            format={f.compact}
            lines={[
              { name: t("ready"), colour: "accent", values: points.map((p) => p.ready) },
              { name: t("dead"), colour: "bad", dashed: true, values: points.map((p) => p.dead) },
            ]}
          />
        </Panel>
        <Panel title={title(t("age"))}>
          <Chart label={t("age")} times={times(points)} format={f.rate} lines={[{ name: t("oldest"), colour: "warn", values: points.map((p) => p.oldest_seconds) }]} />
        </Panel>
      </div>
    </div>
  );
}

function usePoints(topic: string, group: string | undefined, span: "5m" | "24h"): Point[] {
  const series = useApi("/api/v1/topics/{topic}/series", { path: { topic }, query: { group, span } }, { on: { topic }, every: refresh });
  return series.data?.points ?? [];
}

function times(points: Point[]): number[] {
  return points.map((p) => Date.parse(p.at) / 1000);
}
