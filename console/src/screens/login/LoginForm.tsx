import { useState, type FormEvent } from "react";
import { logIn } from "@/api/client";
import { Problem } from "@/api/problem";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { messages as common } from "@/ui/messages";
import { messages } from "./messages";

const field = "w-full rounded border border-line bg-ground px-2 py-1.5 text-text";

/** LoginForm begins a session. What was typed stays when it is refused. */
export function LoginForm() {
  const t = useText(messages);
  const said = useText(common);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [wrong, setWrong] = useState("");
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setWrong("");
    await logIn(name, password).catch((p: unknown) => setWrong(p instanceof Problem ? tell(p) : String(p)));
  };
  const tell = (p: Problem) => {
    if (p.gone) return said("gone.title");
    return p.status === 429 ? said("429.text") : t("wrong");
  };
  return (
    <form onSubmit={(e) => void submit(e)} className="flex flex-col gap-3">
      {wrong && (
        <p role="alert" className="text-bad">
          {wrong}
        </p>
      )}
      <label>
        {t("name")}
        <input className={field} autoComplete="username" required value={name} onChange={(e) => setName(e.target.value)} />
      </label>
      <label>
        {t("password")}
        <input
          className={field}
          type="password"
          autoComplete="current-password"
          required
          value={password}
          onChange={(e) => setPassword(e.target.value)}
        />
      </label>
      <Button type="submit" look="primary">
        {t("title")}
      </Button>
      <a className="text-accent underline" href="/login">
        {t("sso")}
      </a>
    </form>
  );
}
