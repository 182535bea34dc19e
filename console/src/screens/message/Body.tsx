import type { Schemas } from "@/api/client";
import { useFilter } from "@/app/filter";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { bytesOf, hex } from "@/lib/bytes";
import { parsed } from "@/parts/messages/body";
import { Button } from "@/ui/Button";
import { Copy } from "@/ui/Copy";
import { Panel } from "@/ui/Field";
import { JsonTree } from "@/ui/JsonTree";
import { messages } from "./messages";
import { forms, route } from "./screen";

type Message = Schemas["Message"];
type Form = (typeof forms)[number];

const mostHex = 64 << 10;
const mostText = 256 << 10;

/** Body shows what a message carries: as JSON, as text or byte by byte. Who may not see it is told so. */
export function Body({ message }: { message: Message }) {
  const t = useText(messages);
  const f = useFormat();
  const [{ body: chosen }, setFilter] = useFilter(route.useSearch());
  if (message.hidden) {
    return (
      <Panel title={t("body")}>
        <p className="text-muted">{t("hidden")}</p>
      </Panel>
    );
  }
  const encoded = message.body_base64 ?? message.raw_base64;
  const bytes = message.body === undefined && encoded !== undefined ? bytesOf(encoded) : new TextEncoder().encode(message.body ?? "");
  const value = parsed(message.decoded ?? message.body);
  const encoding = message.headers?.["ferry-encoding"]; // the server undoes what it has the filters and keys for
  const possible: Form[] = [...(value === undefined ? [] : ["tree" as const]), ...(message.body === undefined ? [] : ["raw" as const]), "hex"];
  const form = possible.find((p) => p === chosen) ?? possible[0] ?? "hex";
  return (
    <Panel title={t("body")} actions={<Copy text={message.body ?? encoded ?? ""} />}>
      <div className="flex flex-wrap items-center gap-1 pb-2 text-muted">
        {possible.map((p) => (
          <Button key={p} look={p === form ? "plain" : "bare"} aria-pressed={p === form} onClick={() => setFilter({ body: p })}>
            {t(p)}
          </Button>
        ))}
        <span className="ml-auto wrap-anywhere">
          {message.content_type} {f.bytes(bytes.length)}
        </span>
      </div>
      {encoding && <p className="pb-2 text-warn">{t("encoded", { encoding })}</p>}
      {message.decoded !== undefined && form === "tree" && <p className="pb-2 text-muted">{t(message.schemaless ? "decodedWire" : "decoded", { type: message.content_type ?? "" })}</p>}
      {message.undecoded && <p className="pb-2 wrap-anywhere text-warn">{t("undecoded", { type: message.content_type ?? "", why: message.undecoded })}</p>}
      {message.masked && <p className="pb-2 text-muted">{t("masked")}</p>}
      {bytes.length === 0 ? <p className="text-muted">{t("empty")}</p> : <Shown form={form} message={message} value={value} bytes={bytes} />}
    </Panel>
  );
}

function Shown({ form, message, value, bytes }: { form: Form; message: Message; value: unknown; bytes: Uint8Array }) {
  const t = useText(messages);
  const f = useFormat();
  if (form === "tree") return <JsonTree value={value} />;
  const text = form === "raw" ? (message.body ?? "").slice(0, mostText) : hex(bytes.subarray(0, mostHex));
  const cut = form === "raw" ? (message.body ?? "").length > mostText : bytes.length > mostHex;
  return (
    <>
      <pre
        tabIndex={0}
        role="region"
        aria-label={t("body")}
        className={`max-h-[60vh] overflow-auto font-mono ${form === "raw" ? "wrap-anywhere whitespace-pre-wrap" : ""}`}
      >
        {text}
      </pre>
      {cut && <p className="text-muted">{t("cut", { size: f.bytes(form === "raw" ? mostText : mostHex) })}</p>}
    </>
  );
}
