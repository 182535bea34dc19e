import { UserPlus } from "lucide-react";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useAct, useApi } from "@/api/query";
import { useSession } from "@/api/session";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Confirm } from "@/ui/Dialog";
import { Panel } from "@/ui/Field";
import { EmptyState, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import type { en } from "./messages.en";
import { NewPassword, SetUser } from "./SetUser";

export type User = Schemas["User"];

/** Doing is what is being done to a user, or to one who is not there yet. */
type Doing = { what: "add" } | { what: "change" | "password" | "remove"; user: User };

/** Users lists who may log in with which roles, and changes that. */
export function Users() {
  const t = useText(messages);
  const f = useFormat();
  const { identity } = useSession();
  const self = identity.kind === "user" ? identity.name : undefined; // nobody changes their own roles, or locks themselves out
  const [doing, setDoing] = useState<Doing>();
  const loaded = useApi("/api/v1/users", { query: { limit: 500 } });
  const button = (
    <Button onClick={() => setDoing({ what: "add" })}>
      <UserPlus aria-hidden className="size-4" />
      {t("addUser")}
    </Button>
  );
  return (
    <Panel title={t("users")} actions={button}>
      <div className="flex flex-col gap-2">
        <p className="text-muted">{t("usersText")}</p>
        <Show of={loaded}>
          {({ users, next }) => (
            <>
              {users && users.length > 0 ? (
                <Table label={t("users")} columns={columnsOf(t, f, self, setDoing)} rows={users} rowID={(u) => u.name} />
              ) : (
                <EmptyState title={t("noUsers")} icon={UserPlus}>
                  <Command text="ferry user set ann --role operator" />
                </EmptyState>
              )}
              {next && <p className="text-muted">{t("moreUsers")}</p>}
            </>
          )}
        </Show>
      </div>
      {doing && <Doer doing={doing} onClose={() => setDoing(undefined)} />}
    </Panel>
  );
}

function Doer({ doing, onClose }: { doing: Doing; onClose: () => void }) {
  switch (doing.what) {
    case "add":
      return <SetUser onClose={onClose} />;
    case "change":
      return <SetUser of={doing.user} onClose={onClose} />;
    case "password":
      return <NewPassword user={doing.user} onClose={onClose} />;
    case "remove":
      return <Remove user={doing.user} onClose={onClose} />;
  }
}

function Remove({ user: { name }, onClose }: { user: User; onClose: () => void }) {
  const t = useText(messages);
  const remove = useAct("delete", "/api/v1/users/{name}");
  return (
    <Confirm
      title={t("removeUserTitle", { name })}
      open
      onClose={onClose}
      action={t("removeUser")}
      typed={name}
      busy={remove.isPending}
      onConfirm={() => remove.mutate({ path: { name } }, tell(t("userRemoved", { name }), onClose))}
    >
      {t("removeUserText")}
    </Confirm>
  );
}

/** Enabled keeps a user out, or lets one log in again. */
function Enabled({ user: { name, disabled } }: { user: User }) {
  const t = useText(messages);
  const disable = useAct("post", "/api/v1/users/{name}/disable");
  const enable = useAct("post", "/api/v1/users/{name}/enable");
  const act = disabled ? enable : disable;
  return (
    <Button look="bare" disabled={act.isPending} onClick={() => act.mutate({ path: { name } }, tell(t(disabled ? "userEnabled" : "userDisabled", { name })))}>
      {t(disabled ? "enable" : "disable")}
    </Button>
  );
}

function columnsOf(t: Text<keyof typeof en>, f: Format, self: string | undefined, act: (d: Doing) => void): Column<User>[] {
  const grants = (u: User) => u.grants?.map((g) => (g.topics && g.topics.length > 0 ? t("roleOn", { role: t(g.role), topics: g.topics.join(", ") }) : t(g.role))).join("; ");
  return [
    { id: "name", header: t("name"), cell: (u) => <span className="font-medium">{u.name === self ? t("yourself", { name: u.name }) : u.name}</span> },
    { id: "state", header: t("state"), cell: (u) => <Badge tone={u.disabled ? "paused" : "good"}>{t(u.disabled ? "disabled" : "active")}</Badge> },
    { id: "roles", header: t("roles"), cell: (row) => grants(row) },
    { id: "password", header: t("passwordSet"), cell: (row) => f.time(row.password_set) },
    {
      id: "actions",
      header: t("actions"),
      cell: (user) => (
        <span className="inline-flex gap-1">
          <Button look="bare" onClick={() => act({ what: "password", user })}>
            {t("newPassword")}
          </Button>
          {user.name !== self && (
            <>
              <Button look="bare" onClick={() => act({ what: "change", user })}>
                {t("changeRoles")}
              </Button>
              <Enabled user={user} />
              <Button look="bare" onClick={() => act({ what: "remove", user })}>
                {t("removeUser")}
              </Button>
            </>
          )}
        </span>
      ),
    },
  ];
}
