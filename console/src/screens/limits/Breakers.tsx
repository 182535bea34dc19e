import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useAct, useApi } from "@/api/query";
import { useMay } from "@/api/session";
import { useFormat, type Format } from "@/i18n/format";
import { useText, type Text } from "@/i18n/text";
import { Badge, type Tone } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { EmptyState, Show } from "@/ui/States";
import { Table, type Column } from "@/ui/Table";
import { tell } from "@/ui/tell";
import { Because } from "./Because";
import { obeys, type Wanted } from "./breaker";
import { messages } from "./messages";
import type { en } from "./messages.en";

type Breaker = Schemas["Breaker"];

interface Forcing {
  name: string;
  state: Wanted;
}

const tones: Record<Breaker["state"], Tone> = { closed: "good", open: "bad", half_open: "warn" };
const texts = { open: "forceTextOpen", closed: "forceTextClosed", auto: "forceTextAuto" } as const;

/** Breakers lists those of all processes, and forces them. */
export function Breakers() {
  const t = useText(messages);
  const f = useFormat();
  const may = useMay();
  const [forcing, setForcing] = useState<Forcing>();
  const [asked, setAsked] = useState<Record<string, Wanted>>({}); // what processes show when they have obeyed
  const loaded = useApi("/api/v1/breakers", {}, { every: 3000 });
  return (
    <>
      <Show of={loaded}>
        {({ breakers }) =>
          breakers && breakers.length > 0 ? (
            <Table label={t("breakers")} columns={columnsOf(t, f, asked, may("operate"), setForcing)} rows={breakers} rowID={(b) => `${b.name} ${b.instance}`} />
          ) : (
            <EmptyState title={t("noBreakers")}>
              <p>{t("noBreakersText")}</p>
            </EmptyState>
          )
        }
      </Show>
      {forcing && (
        <Force
          {...forcing}
          onDone={() => setAsked((before) => ({ ...before, [forcing.name]: forcing.state }))}
          onClose={() => setForcing(undefined)}
        />
      )}
    </>
  );
}

function Force({ name, state, onDone, onClose }: Forcing & { onDone: () => void; onClose: () => void }) {
  const t = useText(messages);
  const force = useAct("put", "/api/v1/breakers/{name}");
  const done = () => {
    onDone();
    onClose();
  };
  return (
    <Because
      title={t("forceTitle", { name })}
      text={t(texts[state])}
      action={t(`force.${state}`)}
      busy={force.isPending}
      onConfirm={(reason) => force.mutate({ path: { name }, body: { state, ...(reason && { reason }) } }, tell(t("forcedNow", { name }), done))}
      onClose={onClose}
    />
  );
}

function columnsOf(t: Text<keyof typeof en>, f: Format, asked: Record<string, Wanted>, may: boolean, force: (f: Forcing) => void): Column<Breaker>[] {
  const offered = (b: Breaker): Wanted[] => (b.forced ? ["auto"] : b.state === "open" ? ["closed"] : ["open"]);
  return [
    { id: "name", header: t("name"), cell: (row) => <span className="font-medium">{row.name}</span> },
    { id: "instance", header: t("instance"), cell: (row) => row.instance },
    {
      id: "state",
      header: t("state"),
      cell: (b) => (
        <>
          <Badge tone={tones[b.state]}>{t(`breaker.${b.state}`)}</Badge> {b.forced && <span className="text-muted">{t("forced")}</span>}
          <Asked breaker={b} wanted={asked[b.name]} />
        </>
      ),
    },
    { id: "requests", header: t("requests"), cell: (row) => f.compact(row.requests), right: true },
    { id: "failures", header: t("failures"), cell: (row) => f.compact(row.failures), right: true },
    { id: "since", header: t("since"), cell: (row) => f.ago(row.since) },
    {
      id: "actions",
      header: t("actions"),
      cell: (b) =>
        may &&
        offered(b).map((state) => (
          <Button key={state} look="bare" onClick={() => force({ name: b.name, state })}>
            {t(`force.${state}`)}
          </Button>
        )),
    },
  ];
}

/** Asked says that a process has not obeyed yet: it tells of its breaker with its messages, and shows the state before until then. */
function Asked({ breaker, wanted }: { breaker: Breaker; wanted: Wanted | undefined }) {
  const t = useText(messages);
  if (!wanted || obeys(breaker, wanted)) return null;
  return <span className="text-warn">{t("asked", { action: t(`force.${wanted}`) })}</span>;
}
