import { KeyRound } from "lucide-react";
import { useState, type FormEvent } from "react";
import type { Schemas } from "@/api/client";
import { useAct, useApi } from "@/api/query";
import { useSession, type Scope } from "@/api/session";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Confirm, Dialog } from "@/ui/Dialog";
import { Panel } from "@/ui/Field";
import { Check, Input } from "@/ui/Input";
import { EmptyState, Refused, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import type { en } from "./messages.en";

type Token = Schemas["Token"];

/** Tokens lists those that are good, makes new ones and revokes them. */
export function Tokens() {
  const t = useText(messages);
  const f = useFormat();
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Token>();
  const loaded = useApi("/api/v1/tokens", { query: { limit: 500 } });
  const button = (
    <Button onClick={() => setMaking(true)}>
      <KeyRound aria-hidden className="size-4" />
      {t("make")}
    </Button>
  );
  return (
    <Panel title={t("tokens")} actions={button}>
      <div className="flex flex-col gap-2">
        <p className="text-muted">{t("tokensText")}</p>
        <Show of={loaded}>
          {({ tokens, next }) => (
            <>
              {tokens && tokens.length > 0 ? (
                <Table label={t("tokens")} columns={columnsOf(t, f, setRevoking)} rows={tokens} rowID={(x) => x.id} />
              ) : (
                <EmptyState title={t("noTokens")} icon={KeyRound} />
              )}
              {next && <p className="text-muted">{t("more")}</p>}
            </>
          )}
        </Show>
      </div>
      {making && <Make onClose={() => setMaking(false)} />}
      {revoking && <Revoke token={revoking} onClose={() => setRevoking(undefined)} />}
    </Panel>
  );
}

function columnsOf(t: Text<keyof typeof en>, f: Format, revoke: (x: Token) => void): Column<Token>[] {
  return [
    { id: "name", header: t("name"), cell: (row) => <span className="font-medium">{row.name}</span> },
    { id: "rights", header: t("rights"), cell: (row) => row.scopes?.join(", ") },
    { id: "topics", header: t("onTopics"), cell: (row) => (row.topics?.length ? row.topics.join(", ") : t("onAll")) },
    { id: "by", header: t("by"), cell: (row) => row.by },
    { id: "created", header: t("created"), cell: (row) => f.time(row.created) },
    { id: "expires", header: t("expires"), cell: (row) => f.ago(row.expires) },
    {
      id: "actions",
      header: t("actions"),
      cell: (row) => (
        <Button look="bare" onClick={() => revoke(row)}>
          {t("revoke")}
        </Button>
      ),
    },
  ];
}

function Revoke({ token, onClose }: { token: Token; onClose: () => void }) {
  const t = useText(messages);
  const revoke = useAct("delete", "/api/v1/tokens/{id}");
  const { id, name } = token;
  return (
    <Confirm
      title={t("revokeTitle", { name })}
      open
      onClose={onClose}
      action={t("revoke")}
      busy={revoke.isPending}
      onConfirm={() => revoke.mutate({ path: { id } }, tell(t("revoked", { name }), onClose))}
    >
      {t("revokeText")}
    </Confirm>
  );
}

/** Make offers the rights of whoever makes it: nobody gives away what they do not have. */
function Make({ onClose }: { onClose: () => void }) {
  const t = useText(messages);
  const { identity } = useSession();
  const [name, setName] = useState("");
  const [topics, setTopics] = useState("");
  const [ttl, setTTL] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(["publish"]);
  const make = useAct("post", "/api/v1/tokens");
  if (make.data) {
    return (
      <Dialog title={make.data.name} open onClose={onClose}>
        <div className="flex flex-col gap-3">
          <p>{t("made")}</p>
          <Command text={make.data.token} />
          <Button className="self-end" onClick={onClose}>
            {t("close")}
          </Button>
        </div>
      </Dialog>
    );
  }
  const list = topics.split(",").map((x) => x.trim()).filter(Boolean);
  const submit = (e: FormEvent) => {
    e.preventDefault();
    make.mutate({ body: { name, scopes, ...(list.length > 0 && { topics: list }), ...(ttl && { ttl }) } });
  };
  const offered = [...new Set(identity.scopes?.map((s) => s.scope))];
  return (
    <Dialog title={t("make")} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <Input label={t("tokenName")} required value={name} onChange={(e) => setName(e.target.value)} />
        <fieldset>
          <legend>{t("scopes")}</legend>
          <div className="flex flex-wrap gap-x-4">
            {offered.map((s) => (
              <Check key={s} label={s} checked={scopes.includes(s)} onChange={(e) => setScopes(e.target.checked ? [...scopes, s] : scopes.filter((x) => x !== s))} />
            ))}
          </div>
        </fieldset>
        <Input label={t("topics")} value={topics} onChange={(e) => setTopics(e.target.value)} />
        <Input label={t("ttl")} value={ttl} onChange={(e) => setTTL(e.target.value)} />
        {make.error && <Refused problem={make.error} />}
        <Button type="submit" look="primary" disabled={make.isPending || scopes.length === 0}>
          {t("makeDo")}
        </Button>
      </form>
    </Dialog>
  );
}
