import { useState } from "react";
import type { Schemas } from "@/api/client";
import { useAct } from "@/api/query";
import { useMay } from "@/api/session";
import { useText } from "@/i18n/text";
import { ConfirmAct } from "@/parts/ConfirmAct";
import { Button } from "@/ui/Button";
import { tell } from "@/ui/tell";
import { messages } from "./messages";

/** ScheduleActions are what can be done with a schedule. */
export function ScheduleActions({ schedule }: { schedule: Schemas["Schedule"] }) {
  const t = useText(messages);
  const may = useMay();
  const [removing, setRemoving] = useState(false);
  const pause = useAct("post", "/api/v1/schedules/{name}/pause");
  const resume = useAct("post", "/api/v1/schedules/{name}/resume");
  const trigger = useAct("post", "/api/v1/schedules/{name}/trigger");
  const remove = useAct("delete", "/api/v1/schedules/{name}");
  const { name, state, topic } = schedule;
  if (!may("operate", topic)) return null;
  const path = { name };
  const stopped = state === "paused";
  return (
    <span className="inline-flex gap-1">
      {state !== "ended" && (
        <Button look="bare" onClick={() => (stopped ? resume : pause).mutate({ path }, tell(t(stopped ? "resumedNow" : "pausedNow", path)))}>
          {t(stopped ? "resume" : "pause")}
        </Button>
      )}
      <Button look="bare" disabled={trigger.isPending} onClick={() => trigger.mutate({ path }, tell(t("triggered", path)))}>
        {t("trigger")}
      </Button>
      <Button look="bare" onClick={() => setRemoving(true)}>
        {t("remove")}
      </Button>
      {removing && (
        <ConfirmAct
          title={t("removeTitle", path)}
          action={t("remove")}
          typed={name}
          busy={remove.isPending}
          act={(after) => remove.mutate({ path }, after)}
          done={t("removed", path)}
          onClose={() => setRemoving(false)}
        >
          {t("removeText")}
        </ConfirmAct>
      )}
    </span>
  );
}
