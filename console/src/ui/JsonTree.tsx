import { useText } from "@/i18n/text";
import { messages } from "./messages";

const mostChildren = 200;

/** JsonTree shows a value as it is, text only. Long lists are cut, and say so. */
export function JsonTree({ value, name }: { value: unknown; name?: string }) {
  if (value === null || typeof value !== "object") {
    return (
      <div className="pl-4 font-mono break-all">
        {name !== undefined && <span className="text-muted">{name}: </span>}
        <span className={typeof value === "string" ? "text-text" : "text-accent"}>{JSON.stringify(value)}</span>
      </div>
    );
  }
  return <Branch name={name} entries={Object.entries(value)} list={Array.isArray(value)} />;
}

function Branch({ name, entries, list }: { name?: string | undefined; entries: [string, unknown][]; list: boolean }) {
  const t = useText(messages);
  const size = list ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details open className="pl-4 font-mono">
      <summary className="cursor-pointer text-muted">
        {name !== undefined && `${name}: `}
        {size}
      </summary>
      {entries.slice(0, mostChildren).map(([key, child]) => (
        <JsonTree key={key} name={key} value={child} />
      ))}
      {entries.length > mostChildren && (
        <div className="pl-4 text-muted">{t("tooDeep", { count: entries.length - mostChildren })}</div>
      )}
    </details>
  );
}
