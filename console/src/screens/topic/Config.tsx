import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useMay } from "@/api/session";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Configure } from "./Configure";
import { messages } from "./messages";

/** Config shows the configuration of a topic, and changes it. */
export function Config({ topic }: { topic: Schemas["Topic"] }) {
  const t = useText(messages);
  const f = useFormat();
  const may = useMay();
  const [changing, setChanging] = useState(false);
  const c = topic.config;
  const rows: [string, string][] = [
    [t("max_messages"), c.max_messages ? f.number(c.max_messages) : t("noBound")],
    [t("max_bytes"), c.max_bytes ? f.bytes(c.max_bytes) : t("noBound")],
    [t("keep"), c.keep ? f.duration(c.keep) : t("nothing")],
    [t("keep_most"), c.keep_most ? f.number(c.keep_most) : t("noBound")],
    [t("expired_dead"), t(c.expired_dead ? "yes" : "no")],
  ];
  if (c.partitions) rows.push([t("partitions"), f.number(c.partitions)]);
  return (
    <div className="flex max-w-2xl flex-col gap-4">
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1.5 rounded border border-line bg-surface p-3">
        {rows.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {may("admin", topic.topic) && (
        <Button className="self-start" onClick={() => setChanging(true)}>
          {t("change")}
        </Button>
      )}
      {changing && <Configure topic={topic} onClose={() => setChanging(false)} />}
      <p className="text-muted">{t("terminal")}</p>
      <Command text={`ferry topic alter ${topic.topic} --keep 48h`} />
    </div>
  );
}
