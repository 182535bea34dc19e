import { ChartLine, Table2 } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import { regionOf, useFormat } from "@/i18n/format";
import { useLanguage, useText } from "@/i18n/text";
import { systemDark, theme } from "@/app/theme";
import { useStore } from "@/lib/store";
import { Button } from "./Button";
import { messages } from "./messages";

export interface Line {
  name: string;
  values: number[];
  /** colour is the name of a token: accent, warn, bad, muted. */
  colour: "accent" | "warn" | "bad" | "muted";
  dashed?: boolean;
}

interface Props {
  label: string;
  /** times are seconds since 1970. */
  times: number[];
  lines: Line[];
  format: (value: number) => string;
}

/** Chart draws lines over time. Its summary says the same in words, and a table has every number. */
export function Chart({ label, times, lines, format }: Props) {
  const t = useText(messages);
  const [table, setTable] = useState(false);
  const other = t(table ? "chart.chart" : "chart.table");
  const Icon = table ? ChartLine : Table2;
  if (times.length < 2) return <p className="py-8 text-center text-muted">{t("chart.none")}</p>;
  return (
    <figure aria-label={label}>
      {table ? <Numbers times={times} lines={lines} format={format} label={label} /> : <Plot times={times} lines={lines} format={format} />}
      <figcaption className="flex items-start justify-between gap-2 pt-1 text-muted">
        <div className="flex flex-wrap gap-x-4 gap-y-1 pt-1">
          {lines.map((line) => (
            <span key={line.name} className="inline-flex items-center gap-1.5">
              <Sample line={line} />
              {t("chart.summary", { name: line.name, last: format(line.values.at(-1) ?? 0), peak: format(Math.max(...line.values)) })}
            </span>
          ))}
        </div>
        <Button look="bare" className="shrink-0" aria-label={other} title={other} onClick={() => setTable(!table)}>
          <Icon aria-hidden className="size-4" />
        </Button>
      </figcaption>
    </figure>
  );
}

function Sample({ line }: { line: Line }) {
  return (
    <svg aria-hidden width="18" height="4">
      <line x1="0" y1="2" x2="18" y2="2" stroke={`var(--${line.colour})`} strokeWidth="2" strokeDasharray={line.dashed ? "4 3" : undefined} />
    </svg>
  );
}

function Plot({ times, lines, format }: Omit<Props, "label">) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const look = `${useStore(theme)} ${useStore(systemDark)}`;
  const language = regionOf(useLanguage(), navigator.languages);
  const shape = lines.map((l) => l.name + l.colour).join();
  const data = [times, ...lines.map((l) => l.values)] as uPlot.AlignedData;
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(options(element, lines, format, language), data, element);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 180 }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
    };
    // New numbers are set below; only another look makes another plot.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [shape, look, language]);
  useEffect(() => plot.current?.setData(data));
  return <div ref={place} aria-hidden className="h-[180px] w-full overflow-hidden" />;
}

const minute = 60;
const hour = 60 * minute;

/** steps are the seconds between two times that an axis names. */
const steps = [1, 2, 5, 10, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, 24 * hour];

function options(element: HTMLElement, lines: Line[], format: (v: number) => string, language: string): uPlot.Options {
  const style = getComputedStyle(element);
  const probe = (name: string) => {
    element.style.color = `var(--${name})`; // a canvas takes no light-dark(): the browser has to say what it is
    const colour = style.color;
    element.style.color = "";
    return colour;
  };
  const clock = new Intl.DateTimeFormat(language, { timeStyle: "short" });
  const exact = new Intl.DateTimeFormat(language, { timeStyle: "medium" });
  const axis = { stroke: probe("muted"), grid: { stroke: probe("line"), width: 1 }, ticks: { stroke: probe("line") } };
  return {
    width: element.clientWidth,
    height: 180,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [
      {
        ...axis,
        space: 80,
        incrs: steps,
        // One beyond the end would be cut off at the edge.
        values: (u, all, __, ___, step) => all.map((v) => (v > (u.scales["x"]?.max ?? v) ? "" : (step < minute ? exact : clock).format(v * 1000))),
      },
      { ...axis, size: 56, values: (_, all) => all.map(format) },
    ],
    series: [{}, ...lines.map((l) => ({ label: l.name, stroke: probe(l.colour), width: 1.5, dash: l.dashed ? [4, 3] : [] }))],
  };
}

function Numbers({ label, times, lines, format }: Props) {
  const t = useText(messages);
  const f = useFormat();
  return (
    <div tabIndex={0} role="region" aria-label={label} className="h-[180px] overflow-auto">
      <table className="w-full text-right tabular-nums">
        <thead className="sticky top-0 bg-surface text-muted">
          <tr>
            <th scope="col" className="text-left font-medium">
              {t("chart.time")}
            </th>
            {lines.map((l) => (
              <th key={l.name} scope="col" className="font-medium">
                {l.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((at, i) => (
            <tr key={at}>
              <td className="text-left">{f.time(at * 1000)}</td>
              {lines.map((l) => (
                <td key={l.name}>{format(l.values[i] ?? 0)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
