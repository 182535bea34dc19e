import { Link } from "@tanstack/react-router";
import { useText } from "@/i18n/text";
import { EmptyState } from "@/ui/States";
import { messages } from "./messages";

/** Nothing is shown where no screen is. */
export function Nothing() {
  const t = useText(messages);
  return (
    <EmptyState title={t("nothingTitle")}>
      <p>{t("nothingText")}</p>
      <p>
        <Link to="/" className="text-accent underline">
          {t("home")}
        </Link>
      </p>
    </EmptyState>
  );
}
