import { useText } from "@/i18n/text";
import { Command } from "@/ui/Copy";
import { LoginForm } from "./LoginForm";
import { messages } from "./messages";

/** LoginPage is shown to who has no session. */
export function LoginPage() {
  const t = useText(messages);
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col gap-5 px-4 pt-[12vh]">
      <h1 className="flex items-center gap-3 text-xl font-semibold">
        <img src="/icon.svg" alt="" width="32" height="32" /> Ferry 摆渡
      </h1>
      <LoginForm />
      <div className="flex flex-col gap-2 text-muted">
        <p>{t("onceHint")}</p>
        <Command text="ferry user set ann --role admin" />
      </div>
    </main>
  );
}
