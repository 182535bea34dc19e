import { useState, type FormEvent } from "react";
import { ask } from "@/api/client";
import { useAct } from "@/api/query";
import { useMay, useSession } from "@/api/session";
import { useText } from "@/i18n/text";
import { Bulk } from "@/parts/operation/Bulk";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Check, Input, Select } from "@/ui/Input";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import type { Row } from "./view";

/** Actions are what can be done with a group, as far as the broker can and whoever looks may. */
export function Actions({ row, onReset }: { row: Row; onReset: () => void }) {
  const t = useText(messages);
  const may = useMay();
  const { broker } = useSession();
  const pause = useAct("post", "/api/v1/topics/{topic}/groups/{group}/pause");
  const resume = useAct("post", "/api/v1/topics/{topic}/groups/{group}/resume");
  const path = { topic: row.topic.topic, group: row.group.group };
  if (!may("operate", path.topic)) return null;
  const act = row.group.paused ? resume : pause;
  const done = t(row.group.paused ? "resumed" : "paused", path);
  return (
    <span className="inline-flex gap-1">
      <Button look="bare" disabled={act.isPending} onClick={() => act.mutate({ path }, tell(done))}>
        {t(row.group.paused ? "resume" : "pause")}
      </Button>
      {broker.capabilities.history !== "none" && (
        <Button look="bare" onClick={onReset}>
          {t("reset")}
        </Button>
      )}
    </span>
  );
}

type Position = { to?: string; time?: string; force?: boolean };

/** Reset asks for a position, counts what the reset would do, and does it. */
export function Reset({ row, onClose }: { row: Row; onClose: () => void }) {
  const t = useText(messages);
  const path = { topic: row.topic.topic, group: row.group.group };
  const [position, setPosition] = useState<Position>();
  const title = t("resetTitle", path);
  if (!position) return <Where row={row} title={title} onChosen={setPosition} onClose={onClose} />;
  return (
    <Bulk
      title={title}
      action={t("reset")}
      typed={path.group}
      says={(count) => t("resets", { count, group: path.group })}
      start={(dry) => ask("post", "/api/v1/topics/{topic}/groups/{group}/reset", { path, body: { ...position, dry_run: dry } })}
      onClose={onClose}
    />
  );
}

const places = ["begin", "end", "time"] as const;

function Where({ row, title, onChosen, onClose }: { row: Row; title: string; onChosen: (p: Position) => void; onClose: () => void }) {
  const t = useText(messages);
  const [to, setTo] = useState<(typeof places)[number]>("begin");
  const [at, setAt] = useState("");
  const [force, setForce] = useState(false);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const place = to === "time" ? { time: new Date(at).toISOString() } : { to };
    onChosen(force ? { ...place, force } : place);
  };
  return (
    <Dialog title={title} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <p className="text-muted">{t("resetText")}</p>
        <Select
          label={t("to")}
          value={to}
          choices={places.map((value) => ({ value, label: t(value) }))}
          onChange={(value) => setTo(places.find((p) => p === value) ?? "begin")}
        />
        {to === "time" && <Input label={t("at")} type="datetime-local" step={1} required value={at} onChange={(e) => setAt(e.target.value)} />}
        {row.group.consumers > 0 && (
          <>
            <p className="text-warn">{t("active", { count: row.group.consumers })}</p>
            <Check label={t("force")} checked={force} onChange={(e) => setForce(e.target.checked)} />
          </>
        )}
        <Button type="submit" look="primary">
          {t("count")}
        </Button>
      </form>
    </Dialog>
  );
}
