import { Plus, X } from "lucide-react";
import { useState, type FormEvent } from "react";
import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Command } from "@/ui/Copy";
import { Confirm, Dialog } from "@/ui/Dialog";
import { Input, Select } from "@/ui/Input";
import { Refused } from "@/ui/States";
import { tell } from "@/ui/tell";
import { messages } from "./messages";
import { newPassword } from "./password";
import type { User } from "./Users";

const roles = ["viewer", "operator", "admin"] as const;

/** Draft is a grant as it is typed: its topics have commas. */
interface Draft {
  role: (typeof roles)[number];
  topics: string;
}

function grantOf({ role, topics }: Draft): Schemas["Grant"] {
  const list = topics.split(",").map((x) => x.trim()).filter(Boolean);
  return { role, ...(list.length > 0 && { topics: list }) };
}

/** SetUser adds somebody, with a password that is told once, or changes the roles of a user. */
export function SetUser({ of, onClose }: { of?: User; onClose: () => void }) {
  const t = useText(messages);
  const [name, setName] = useState(of?.name ?? "");
  const [drafts, setDrafts] = useState<Draft[]>(() => of?.grants?.map((g) => ({ role: g.role, topics: g.topics?.join(", ") ?? "" })) ?? [{ role: "viewer", topics: "" }]);
  const [password] = useState(newPassword);
  const put = useAct("put", "/api/v1/users/{name}");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const body = { grants: drafts.map(grantOf), ...(!of && { password }) };
    put.mutate({ path: { name }, body }, of ? { onSuccess: tell(t("rolesChanged", { name }), onClose).onSuccess } : {});
  };
  if (!of && put.isSuccess) return <Told name={name} password={password} onClose={onClose} />;
  return (
    <Dialog title={of ? t("rolesOf", { name }) : t("addUser")} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        {!of && <Input label={t("name")} required value={name} onChange={(e) => setName(e.target.value)} />}
        <Grants drafts={drafts} onChange={setDrafts} />
        {put.error && <Refused problem={put.error} />}
        <Button type="submit" look="primary" disabled={put.isPending || drafts.length === 0}>
          {t(of ? "changeRoles" : "addUser")}
        </Button>
      </form>
    </Dialog>
  );
}

function Grants({ drafts, onChange }: { drafts: Draft[]; onChange: (drafts: Draft[]) => void }) {
  const t = useText(messages);
  const set = (at: number, patch: Partial<Draft>) => onChange(drafts.map((d, i) => (i === at ? { ...d, ...patch } : d)));
  return (
    <fieldset className="flex flex-col gap-2">
      <legend>{t("roles")}</legend>
      {drafts.map((d, at) => (
        <div key={at} className="flex items-end gap-2">
          <Select
            label={t("role")}
            value={d.role}
            choices={roles.map((value) => ({ value, label: t(value) }))}
            onChange={(value) => set(at, { role: roles.find((r) => r === value) ?? "viewer" })}
          />
          <Input className="grow" label={t("topics")} value={d.topics} onChange={(e) => set(at, { topics: e.target.value })} />
          {drafts.length > 1 && (
            <Button look="bare" aria-label={t("withoutRole", { role: t(d.role) })} onClick={() => onChange(drafts.filter((_, i) => i !== at))}>
              <X aria-hidden className="size-4" />
            </Button>
          )}
        </div>
      ))}
      <Button look="bare" className="self-start" onClick={() => onChange([...drafts, { role: "viewer", topics: "" }])}>
        <Plus aria-hidden className="size-4" />
        {t("anotherRole")}
      </Button>
    </fieldset>
  );
}

/** NewPassword replaces the password of a user, which ends its sessions, by one that is told once. */
export function NewPassword({ user: { name }, onClose }: { user: User; onClose: () => void }) {
  const t = useText(messages);
  const [password] = useState(newPassword);
  const put = useAct("put", "/api/v1/users/{name}");
  if (put.isSuccess) return <Told name={name} password={password} onClose={onClose} />;
  return (
    <Confirm
      title={t("passwordOf", { name })}
      open
      onClose={onClose}
      action={t("newPassword")}
      busy={put.isPending}
      onConfirm={() => put.mutate({ path: { name }, body: { password } })}
    >
      <div className="flex flex-col gap-3">
        <p>{t("passwordText")}</p>
        {put.error && <Refused problem={put.error} />}
      </div>
    </Confirm>
  );
}

/** Told shows a password once: neither the server nor this page can show it again. */
function Told({ name, password, onClose }: { name: string; password: string; onClose: () => void }) {
  const t = useText(messages);
  return (
    <Dialog title={t("passwordOf", { name })} open onClose={onClose}>
      <div className="flex flex-col gap-3">
        <p>{t("passwordTold")}</p>
        <Command text={password} />
        <Button className="self-end" onClick={onClose}>
          {t("close")}
        </Button>
      </div>
    </Dialog>
  );
}
