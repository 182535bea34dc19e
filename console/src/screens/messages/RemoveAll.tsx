import { ask } from "@/api/client";
import { useText } from "@/i18n/text";
import type { State } from "@/parts/messages/state";
import { Bulk } from "@/parts/operation/Bulk";
import { messages } from "./messages";

/** removable are the states of messages that wait. */
export const removable: readonly State[] = ["ready", "waiting", "delayed", "held"];

interface Props {
  topic: string;
  state: State | undefined;
  where: string;
  onClose: () => void;
}

/** RemoveAll removes every message that waits and that the filter selects. What runs, is done or died is not touched. */
export function RemoveAll({ topic, state, where, onClose }: Props) {
  const t = useText(messages);
  const body = { ...(state && { states: [state] }), ...(where && { where }) };
  return (
    <Bulk
      title={t("removeAllTitle", { topic })}
      action={t("removeAll")}
      typed={topic}
      says={(count) => [t("removeAllText", { count, topic }), where && t("removeAllWhere", { where })].filter(Boolean).join(" ")}
      start={(dry) => ask("post", "/api/v1/topics/{topic}/purge", { path: { topic }, body: { ...body, dry_run: dry } })}
      onClose={onClose}
    />
  );
}
