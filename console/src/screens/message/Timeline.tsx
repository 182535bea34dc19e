import { CircleCheck, CircleDashed, CircleDot, CircleX, Clock, Play, RotateCcw, Skull, type LucideIcon } from "lucide-react";
import type { Schemas } from "@/api/client";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { seconds } from "@/lib/duration";
import { useWords } from "@/parts/words/words";
import { messages } from "./messages";
import { timeline, type Event } from "./events";

const looks: Record<Event["kind"], { icon: LucideIcon; colour: string }> = {
  published: { icon: CircleDot, colour: "text-accent" },
  due: { icon: Clock, colour: "text-muted" },
  lost: { icon: CircleDashed, colour: "text-muted" },
  failed: { icon: CircleX, colour: "text-bad" },
  replayed: { icon: RotateCcw, colour: "text-accent" },
  running: { icon: Play, colour: "text-good" },
  waiting: { icon: Clock, colour: "text-warn" },
  ready: { icon: CircleDot, colour: "text-accent" },
  dead: { icon: Skull, colour: "text-bad" },
  done: { icon: CircleCheck, colour: "text-good" },
};

/** Timeline is what happened to a message in a group, and how long it waited each time. */
export function Timeline({ message }: { message: Schemas["Message"] }) {
  const t = useText(messages);
  const f = useFormat();
  const word = useWords();
  const reasonOf = (reason = "") => {
    const meaning = word("reason", reason);
    return meaning === reason ? reason : t("because", { meaning, reason });
  };
  return (
    <ol className="flex flex-col gap-3">
      {timeline(message).map((event, i) => {
        const { icon: Icon, colour } = looks[event.kind];
        return (
          <li key={i} className="flex gap-2">
            <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${colour}`} />
            <div className="min-w-0 grow">
              <p className="flex flex-wrap gap-x-3">
                <span className="font-medium">{t(event.kind === "replayed" ? "replayedOnce" : event.kind, { attempt: event.failure?.attempt ?? 0, count: event.count ?? 0, reason: reasonOf(message.dead?.reason) })}</span>
                {event.at && <time dateTime={event.at}>{f.time(event.at)}</time>}
                {event.wait !== undefined && event.wait > 0 && <span className="text-muted">{t("waited", { time: f.duration(event.wait) })}</span>}
                {event.failure && seconds(event.failure.duration) > 0 && <span className="text-muted">{t("took", { time: f.duration(event.failure.duration) })}</span>}
                {event.kind === "done" && message.took && <span className="text-muted">{t("took", { time: f.duration(message.took) })}</span>}
              </p>
              {event.failure && <Failed failure={event.failure} />}
              {event.kind === "dead" && message.dead && message.dead.error !== message.history?.at(-1)?.error && <Died dead={message.dead} />}
            </div>
          </li>
        );
      })}
    </ol>
  );
}

function Failed({ failure }: { failure: Schemas["Failure"] }) {
  const t = useText(messages);
  return (
    <>
      <p className="font-mono wrap-anywhere text-bad">{failure.error || failure.reason}</p>
      {failure.instance && <p className="wrap-anywhere text-muted">{t("by", { instance: failure.instance })}</p>}
      <Stack text={failure.stack} />
    </>
  );
}

function Died({ dead }: { dead: Schemas["Dead"] }) {
  const t = useText(messages);
  return (
    <>
      {dead.error && <p className="font-mono wrap-anywhere text-bad">{dead.error}</p>}
      {dead.instance && <p className="wrap-anywhere text-muted">{t("by", { instance: dead.instance })}</p>}
      <Stack text={dead.stack} />
    </>
  );
}

function Stack({ text }: { text: string | undefined }) {
  const t = useText(messages);
  if (!text) return null;
  return (
    <details>
      <summary className="cursor-pointer py-0.5 text-muted">{t("stack")}</summary>
      <pre tabIndex={0} aria-label={t("stack")} role="region" className="max-h-80 overflow-auto rounded bg-ground p-2 font-mono text-xs">
        {text}
      </pre>
    </details>
  );
}
