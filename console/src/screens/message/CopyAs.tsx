import type { Schemas } from "@/api/client";
import { useFilter } from "@/app/filter";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Copy } from "@/ui/Copy";
import { Panel } from "@/ui/Field";
import { messages } from "./messages";
import { languages, route } from "./screen";
import { snippets } from "./snippets";

/** CopyAs has the message as a command or code that publishes the same again. */
export function CopyAs({ message }: { message: Schemas["Message"] }) {
  const t = useText(messages);
  const [{ as = "cli" }, setFilter] = useFilter(route.useSearch());
  const chosen: (typeof languages)[number] = as;
  const text = snippets(message)[chosen];
  return (
    <Panel title={t("copyAs")} actions={<Copy text={text} />}>
      <div className="flex gap-1 pb-2">
        {languages.map((l) => (
          <Button key={l} look={l === as ? "plain" : "bare"} aria-pressed={l === as} onClick={() => setFilter({ as: l })}>
            {t(l)}
          </Button>
        ))}
      </div>
      {(message.hidden || message.masked) && <p className="pb-2 text-muted">{t("snippetHidden")}</p>}
      <pre tabIndex={0} role="region" aria-label={t("copyAs")} className="max-h-60 overflow-auto rounded bg-ground p-2 font-mono wrap-anywhere whitespace-pre-wrap">
        {text}
      </pre>
    </Panel>
  );
}
