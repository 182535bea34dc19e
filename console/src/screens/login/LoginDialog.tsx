import { useText } from "@/i18n/text";
import { Dialog } from "@/ui/Dialog";
import { LoginForm } from "./LoginForm";
import { messages } from "./messages";

/** LoginDialog stands over a screen whose session is over, so that nothing on it is lost. */
export function LoginDialog({ open }: { open: boolean }) {
  const t = useText(messages);
  return (
    <Dialog title={t("title")} open={open} onClose={() => undefined}>
      <p className="mb-3 text-muted">{t("over")}</p>
      <LoginForm />
    </Dialog>
  );
}
