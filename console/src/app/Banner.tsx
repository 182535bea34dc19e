import { useEffect, useState } from "react";
import { connection, tryNow, type Lost } from "@/api/connection";
import { useFormat } from "@/i18n/format";
import { useText } from "@/i18n/text";
import { useStore } from "@/lib/store";
import { Button } from "@/ui/Button";
import { messages } from "./messages";

/** Banner says that nothing answers, how old the data are, and counts down to the next try. */
export function Banner() {
  const lost = useStore(connection);
  return lost ? <Countdown lost={lost} /> : null;
}

function Countdown({ lost }: { lost: Lost }) {
  const t = useText(messages);
  const f = useFormat();
  const now = useClock();
  const left = Math.max(0, Math.ceil((lost.next - now) / 1000));
  const age = Math.max(1, Math.round((now - lost.since) / 1000));
  return (
    <div role="alert" className="flex flex-wrap items-center gap-3 border-b border-line bg-raised px-4 py-1.5 text-warn">
      <span>{t("lost", { age: f.duration(age), next: f.duration(left) })}</span>
      <Button onClick={() => void tryNow()}>{t("tryNow")}</Button>
    </div>
  );
}

/** useClock ticks each second. */
function useClock(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
