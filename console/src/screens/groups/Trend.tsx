import { ArrowDownRight, ArrowRight, ArrowUpRight } from "lucide-react";
import { useText } from "@/i18n/text";
import type { Lag } from "./lag";
import { messages } from "./messages";

const looks = {
  rising: { icon: ArrowUpRight, colour: "text-warn" },
  falling: { icon: ArrowDownRight, colour: "text-good" },
  steady: { icon: ArrowRight, colour: "text-muted" },
};

/** Trend is an arrow and a word. */
export function Trend({ lag }: { lag: Lag }) {
  const t = useText(messages);
  const { icon: Icon, colour } = looks[lag.trend];
  return (
    <span className={`inline-flex items-center gap-1 ${colour}`}>
      <Icon aria-hidden className="size-4" />
      {t(lag.trend)}
    </span>
  );
}
