import { Inbox, TriangleAlert, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import type { Problem } from "@/api/problem";
import type { Loaded } from "@/api/query";
import { useText } from "@/i18n/text";
import { Button } from "./Button";
import { messages } from "./messages";

interface StateProps {
  title: string;
  children?: ReactNode;
  icon?: LucideIcon;
}

/** EmptyState says what it means that nothing is here, and what to do next. */
export function EmptyState({ title, children, icon: Icon = Inbox }: StateProps) {
  return (
    <div className="mx-auto flex w-full max-w-xl flex-col items-center gap-3 px-4 py-10 text-center">
      <Icon aria-hidden className="size-7 text-muted" />
      <p className="text-base font-semibold">{title}</p>
      {children && <div className="flex w-full min-w-0 flex-col gap-2 text-muted">{children}</div>}
    </div>
  );
}

/** NoMatch says that a filter has left nothing, of how many, and takes it away. */
export function NoMatch({ q, count, onClear }: { q: string; count: number; onClear: () => void }) {
  const t = useText(messages);
  return (
    <EmptyState title={t("noMatch", { q })}>
      <p>{t("noMatchText", { count })}</p>
      <p>
        <Button onClick={onClear}>{t("clear")}</Button>
      </p>
    </EmptyState>
  );
}

const known = ["401", "403", "404", "409", "429", "501"] as const;

/** ErrorState says what a problem means, by its status, and what the server said and hinted. */
export function ErrorState({ problem, onAgain }: { problem: Problem; onAgain?: () => void }) {
  const t = useText(messages);
  const status = problem.gone ? "gone" : (known.find((k) => k === String(problem.status)) ?? "other");
  return (
    <div role="alert">
      <EmptyState title={t(`${status}.title`)} icon={TriangleAlert}>
        <p>{t(`${status}.text`)}</p>
        {!problem.gone && problem.detail && <p className="font-mono break-words">{problem.detail}</p>}
        {problem.hint && <p className="break-words">{problem.hint}</p>}
        {problem.requestID && <p className="text-xs">{t("requestID", { id: problem.requestID })}</p>}
        {onAgain && (
          <p>
            <Button onClick={onAgain}>{t("again")}</Button>
          </p>
        )}
      </EmptyState>
    </div>
  );
}

/** Refused says why what was typed into a form was not taken; it stays as it was typed. */
export function Refused({ problem }: { problem: Problem }) {
  const t = useText(messages);
  const status = problem.gone ? "gone" : known.find((k) => k === String(problem.status));
  const title = status === "403" ? t("403.act") : status ? t(`${status}.title`) : problem.detail ? "" : t("other.title");
  return (
    <div role="alert" className="flex gap-2 rounded border border-line bg-ground px-3 py-2">
      <TriangleAlert aria-hidden className="mt-1 size-4 shrink-0 text-bad" />
      <div className="min-w-0 wrap-anywhere">
        {title && <p className="font-semibold">{title}</p>}
        {!problem.gone && problem.detail && <p>{problem.detail}</p>}
        {problem.fields.map(({ location, message }) => (
          <p key={location + message}>
            <code>{location.replace(/^body\./, "")}</code>: {message}
          </p>
        ))}
        {problem.hint && problem.fields.length === 0 && <p className="text-muted">{problem.hint}</p>}
        {problem.requestID && <p className="text-xs text-muted">{t("requestID", { id: problem.requestID })}</p>}
      </div>
    </div>
  );
}

/** Show shows what was loaded. Data that are there stay, whatever became of asking for newer ones. */
export function Show<T>({ of, children }: { of: Loaded<T>; children: (data: NonNullable<T>) => ReactNode }) {
  if (of.data !== undefined && of.data !== null) return children(of.data);
  if (of.problem) return <ErrorState problem={of.problem} onAgain={of.refresh} />;
  return <Loading />;
}

export function Loading() {
  const t = useText(messages);
  return (
    <p role="status" className="px-4 py-10 text-center text-muted">
      {t("loading")}…
    </p>
  );
}
