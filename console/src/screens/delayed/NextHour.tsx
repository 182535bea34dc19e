import { useText } from "@/i18n/text";
import { Panel } from "@/ui/Field";
import { nextHour } from "./hour";
import { messages } from "./messages";

const height = 40;

/** NextHour draws when messages become due, five minutes at a time. Each bar says the same in words. */
export function NextHour({ due }: { due: string[] }) {
  const t = useText(messages);
  const buckets = nextHour(due, Date.now());
  const most = Math.max(1, ...buckets.map((b) => b.count));
  const sum = buckets.reduce((n, b) => n + b.count, 0);
  return (
    <Panel title={t("nextHour")}>
      <ol className="flex items-end gap-1" aria-label={t("nextHour")}>
        {buckets.map((b) => (
          <li key={b.from} className="min-w-0 grow text-center" title={t("bucket", { from: b.from, to: b.to, count: b.count })}>
            <svg aria-hidden className="block w-full" height={height} preserveAspectRatio="none" viewBox={`0 0 10 ${height}`}>
              <rect x="0" width="10" y={height - Math.max(1, (b.count / most) * height)} height={height} fill={b.count > 0 ? "var(--accent)" : "var(--line)"} />
            </svg>
            <span aria-hidden className="text-xs text-muted tabular-nums">
              {b.from}
            </span>
            <span className="sr-only">{t("bucket", { from: b.from, to: b.to, count: b.count })}</span>
          </li>
        ))}
      </ol>
      <p className="pt-1 text-muted">{t("nextHourOf", { count: sum, all: due.length })}</p>
    </Panel>
  );
}
