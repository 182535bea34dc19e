import { ArrowRightLeft, Download, Pencil, RotateCcw, Trash2, type LucideIcon } from "lucide-react";
import { useEffect, useState } from "react";
import { address, ask, type Schemas } from "@/api/client";
import { useMay } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useKeys } from "@/app/keys";
import { useText } from "@/i18n/text";
import { Failure, Reasons } from "@/parts/operation/Progress";
import { useBulk } from "@/parts/operation/useBulk";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Dialog";
import { field } from "@/ui/Field";
import { Refused } from "@/ui/States";
import { messages } from "./messages";
import { route } from "./screen";
import type { Selection } from "./tally";

type Act = "retry" | "edit" | "move" | "remove";

const icons: Record<Act, LucideIcon> = { retry: RotateCcw, edit: Pencil, move: ArrowRightLeft, remove: Trash2 };

/** Bulk is what can be done with every letter that the filter selects, whatever page is shown. */
export function Bulk({ selection, matched }: { selection: Selection; matched: number }) {
  const t = useText(messages);
  const may = useMay();
  const [act, setAct] = useState<Act>();
  const acts = matched > 0 && may("operate", selection.topic);
  useKeys(acts ? [{ keys: "r", label: t("retry"), run: () => setAct("retry") }, { keys: "e", label: t("edit"), run: () => setAct("edit") }] : []);
  if (matched === 0) return null;
  return (
    <>
      {may("payload", selection.topic) &&
        (["ndjson", "csv"] as const).map((format) => (
          <a
            key={format}
            href={address("/api/v1/dead/export", { query: { ...selection, format } })}
            download={`dead.${format}`}
            className="inline-flex min-h-8 items-center gap-1.5 rounded border border-line bg-surface px-2.5 py-0.5 hover:bg-raised"
          >
            <Download aria-hidden className="size-4" />
            {t(format)}
          </a>
        ))}
      {acts &&
        (["retry", "edit", "move", "remove"] as const).map((a) => {
          const Icon = icons[a];
          return (
            <Button key={a} look={a === "remove" ? "danger" : a === "retry" ? "primary" : "plain"} onClick={() => setAct(a)}>
              <Icon aria-hidden className="size-4" />
              {t(a)}
            </Button>
          );
        })}
      {act && <BulkDialog act={act} selection={selection} onClose={() => setAct(undefined)} />}
    </>
  );
}

/** Options are what somebody may say of an act beyond the filter. */
interface Options {
  rate: string;
  to: string;
  patch: string;
}

/** bodyOf is the request of an act, or why there is none yet. */
function bodyOf(act: Act, selection: Selection, o: Options): Schemas["ReplayMany"] | "incomplete" | "broken" {
  const rate = Number(o.rate);
  const body: Schemas["ReplayMany"] = { ...selection, ...(rate > 0 && { rate }) };
  if (selection.state === "invalid" && act !== "remove") body.keep_body = true;
  if (act === "move") {
    if (o.to === "") return "incomplete";
    body.to = o.to;
  }
  if (act === "edit") {
    try {
      const patch: unknown = JSON.parse(o.patch);
      if (!Array.isArray(patch) || patch.length === 0) return "broken";
      body.patch = patch as Schemas["PatchStep"][];
    } catch {
      return "broken";
    }
  }
  return body;
}

/** BulkDialog counts first what an act would do, and takes that number before it does it, as an operation. */
function BulkDialog({ act, selection, onClose }: { act: Act; selection: Selection; onClose: () => void }) {
  const t = useText(messages);
  const [, setFilter] = useFilter(route.useSearch());
  const [options, setOptions] = useState<Options>({ rate: "", to: "", patch: '[{"op": "replace", "path": "/id", "value": 1}]' });
  const body = bodyOf(act, selection, options);
  const ready = typeof body === "object";
  const wanted = ready ? JSON.stringify(body) : "";
  const path = act === "remove" ? "/api/v1/dead/remove" : "/api/v1/dead/replay";
  const { problem, result, busy, count, run } = useBulk((dry) => ask("post", path, { body: { ...(JSON.parse(wanted) as object), dry_run: dry } }));
  const [counted, setCounted] = useState(""); // the request, so that what was counted is what is run
  const look = () => {
    setCounted(wanted);
    count();
  };
  const fresh = result !== undefined && counted === wanted;
  const some = fresh && result.state === "done" && result.done > 0;
  const immediate = act === "retry" || act === "remove";
  useEffect(() => {
    if (immediate && wanted !== "") look();
    // Counted when it is opened; what changes the count has a button.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  const confirm = () => run((op) => (onClose(), setFilter({ op })));
  return (
    <Confirm
      title={t(`${act}Title`)}
      open
      onClose={onClose}
      action={t(act)}
      busy={busy || !some}
      onConfirm={confirm}
      {...(some && { typed: String(result.done) })}
    >
      <div className="flex flex-col gap-3">
        <p>{t(`${act}Text`)}</p>
        <p className="rounded bg-ground p-2 font-mono wrap-anywhere">{described(selection) || t("everything")}</p>
        <Fields act={act} options={options} onChange={setOptions} broken={body === "broken"} />
        {problem && <Refused problem={problem} />}
        {fresh ? (
          <div role="status">
            <p className="font-medium">{t(`${act}Would`, { done: result.done ?? 0, skipped: result.skipped ?? 0 })}</p>
            <Reasons of={result} />
            <Failure of={result} />
          </div>
        ) : counted === wanted && wanted !== "" && !problem ? (
          <p role="status" className="text-muted">
            {t("counting")}
          </p>
        ) : (
          <Button className="self-start" disabled={!ready} onClick={look}>
            {t("countIt")}
          </Button>
        )}
      </div>
    </Confirm>
  );
}

/** described is a selection in words that the API takes. */
function described(s: Selection): string {
  return [s.topic && `topic ${s.topic}`, s.group && `group ${s.group}`, s.state, s.where].filter(Boolean).join(", ");
}

interface FieldsProps {
  act: Act;
  options: Options;
  onChange: (options: Options) => void;
  broken: boolean;
}

function Fields({ act, options, onChange, broken }: FieldsProps) {
  const t = useText(messages);
  return (
    <>
      {act === "move" && (
        <label>
          {t("to")}
          <input className={field} value={options.to} onChange={(e) => onChange({ ...options, to: e.target.value.trim() })} />
        </label>
      )}
      {act === "edit" && (
        <label>
          {t("patch")}
          <textarea className={field} rows={5} spellCheck={false} value={options.patch} onChange={(e) => onChange({ ...options, patch: e.target.value })} />
          {broken && <span className="text-warn">{t("patchBroken")}</span>}
        </label>
      )}
      <label>
        {t("rate")}
        <input type="number" min="0" className={field} value={options.rate} onChange={(e) => onChange({ ...options, rate: e.target.value })} />
      </label>
    </>
  );
}
