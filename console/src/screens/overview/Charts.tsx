import { lazy, Suspense } from "react";
import { useApi } from "@/api/query";
import { useFilter } from "@/app/filter";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import type { Line } from "@/ui/Chart";
import { Panel } from "@/ui/Field";
import { messages } from "./messages";
import { joined, keptPoint, type Point } from "./points";
import { route, spans } from "./screen";

const Chart = lazy(() => import("@/ui/Chart").then((m) => ({ default: m.Chart })));

type Search = { span?: (typeof spans)[number] | undefined };

const seconds = { "5m": 300, "24h": 86400 };

/** Charts draw what came, what left, what waits and what died, over time: as the server remembers it, and then as the stream tells. */
export function Charts({ live }: { live: Point[] }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ span = "5m" }, setFilter] = useFilter<Search>(route.useSearch());
  const series = useApi("/api/v1/series", { query: { span } });
  const kept = (series.data?.span === span ? (series.data?.points ?? []) : []).map(keptPoint);
  const points = joined(kept, live, seconds[span]);
  const charts: [title: string, format: (n: number) => string, lines: Line[]][] = [
    [
      t("rates"),
      f.rate,
      [
        { name: t("in"), colour: "accent", values: points.map((p) => p.in) },
        { name: t("out"), colour: "warn", dashed: true, values: points.map((p) => p.out) },
      ],
    ],
    [t("ready"), f.compact, [{ name: t("ready"), colour: "accent", values: points.map((p) => p.ready) }]],
    [t("dead"), f.compact, [{ name: t("dead"), colour: "bad", values: points.map((p) => p.dead) }]],
  ];
  return (
    <section aria-label={t("charts")} className="flex flex-col gap-2">
      <div className="flex gap-1" role="group" aria-label={t("span")}>
        {spans.map((s) => (
          <Button key={s} aria-pressed={s === span} look={s === span ? "plain" : "bare"} onClick={() => setFilter({ span: s })}>
            {t(s)}
          </Button>
        ))}
      </div>
      <div className="grid gap-3 xl:grid-cols-3">
        {charts.map(([title, format, lines]) => (
          <Panel key={title} title={title}>
            <Suspense fallback={<div className="h-[210px]" />}>
              <Chart label={title} times={points.map((p) => p.at)} format={format} lines={lines} />
            </Suspense>
          </Panel>
        ))}
      </div>
    </section>
  );
}
