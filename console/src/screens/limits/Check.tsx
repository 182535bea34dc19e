import { useState, type FormEvent } from "react";
import { useAct, useApi } from "@/api/query";
import { useMay } from "@/api/session";
import { useFilter } from "@/app/filter";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Entries, Entry } from "@/ui/Entries";
import { Input } from "@/ui/Input";
import { Show } from "@/ui/States";
import { tell } from "@/ui/tell";
import { KeyActions, KeyState, useRule } from "./key";
import { messages } from "./messages";
import { route } from "./screen";

/** Check asks whether a message of a key would pass, and shows what is known of the key. */
export function Check() {
  const t = useText(messages);
  const [filter, setFilter] = useFilter(route.useSearch());
  const [limit, setLimit] = useState(filter.limit ?? "default");
  const [key, setKey] = useState(filter.key ?? "");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    setFilter({ limit, key });
  };
  return (
    <div className="flex max-w-2xl flex-col gap-4">
      <p className="text-muted">{t("checkText")}</p>
      <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
        <Input label={t("limit")} required value={limit} onChange={(e) => setLimit(e.target.value)} />
        <Input label={t("key")} required value={key} onChange={(e) => setKey(e.target.value)} />
        <Button type="submit" look="primary">
          {t("ask")}
        </Button>
      </form>
      {filter.limit && filter.key && <Answer limit={filter.limit} name={filter.key} />}
    </div>
  );
}

function Answer({ limit, name }: { limit: string; name: string }) {
  const t = useText(messages);
  const f = useFormat();
  const rule = useRule();
  const path = { limit, key: name };
  const verdict = useApi("/api/v1/limits/{limit}/keys/{key}/check", { path }, { every: 3000 });
  const known = useApi("/api/v1/limits/{limit}/keys/{key}", { path }, { every: 3000 });
  return (
    <div className="flex flex-col gap-3 rounded border border-line bg-surface p-3">
      <Show of={verdict}>
        {(v) => (
          <p role="status">
            {v.passes && <Badge tone="good">{t("passes")}</Badge>}
            {!v.passes && v.blocked && <Badge tone="bad">{t("isBlocked")}</Badge>}
            {!v.passes && !v.blocked && <Badge tone="warn">{t("waits", { after: f.duration(v.after) })}</Badge>}
          </p>
        )}
      </Show>
      <Show of={known}>
        {(k) => (
          <>
            <Entries>
              {(k.block || k.whitelisted || k.override) && (
                <Entry name={t("state")}>
                  <KeyState of={k} />
                </Entry>
              )}
              <Entry name={t("used")}>{f.number(k.used)}</Entry>
              <Entry name={t("violations")}>{f.number(k.violations)}</Entry>
              <Entry name={t("rule")}>{rule(k.override?.rule ?? k.rule)}</Entry>
              {k.reason && <Entry name={t("reason")}>{k.reason}</Entry>}
              {k.actor && <Entry name={t("who")}>{k.actor}</Entry>}
            </Entries>
            <div className="flex flex-wrap gap-1">
              <KeyActions of={k} />
              {!k.whitelisted && <Whitelist limit={limit} name={name} />}
            </div>
          </>
        )}
      </Show>
    </div>
  );
}

function Whitelist({ limit, name }: { limit: string; name: string }) {
  const t = useText(messages);
  const may = useMay();
  const list = useAct("put", "/api/v1/limits/{limit}/keys/{key}/whitelist");
  if (!may("operate")) return null;
  return (
    <Button disabled={list.isPending} onClick={() => list.mutate({ path: { limit, key: name } }, tell(t("whitelistedNow", { key: name })))}>
      {t("whitelist")}
    </Button>
  );
}
