import { useState, type FormEvent } from "react";
import { useAct } from "@/api/query";
import { useText } from "@/i18n/text";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Input } from "@/ui/Input";
import { Refused } from "@/ui/States";
import { tell } from "@/ui/tell";
import { messages } from "./messages";

/** Silenced is what a silence is for: patterns, of which an empty one is everything. */
export interface Silenced {
  rule: string;
  subject: string;
}

/** Silence keeps notices back until a time, for a reason. */
export function Silence({ of, onClose }: { of: Silenced; onClose: () => void }) {
  const t = useText(messages);
  const [rule, setRule] = useState(of.rule);
  const [subject, setSubject] = useState(of.subject);
  const [duration, setDuration] = useState("2h");
  const [comment, setComment] = useState("");
  const add = useAct("post", "/api/v1/silences");
  const submit = (e: FormEvent) => {
    e.preventDefault();
    const body = { duration, ...(rule && { rule }), ...(subject && { subject }), ...(comment && { comment }) };
    add.mutate({ body }, { onSuccess: tell(t("silencedNow"), onClose).onSuccess });
  };
  return (
    <Dialog title={t("newSilence")} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <p className="text-muted">{t("silenceText")}</p>
        <Input label={t("rulePattern")} value={rule} onChange={(e) => setRule(e.target.value)} />
        <Input label={t("subjectPattern")} value={subject} onChange={(e) => setSubject(e.target.value)} />
        <Input label={t("duration")} required value={duration} onChange={(e) => setDuration(e.target.value)} />
        <Input label={t("comment")} value={comment} onChange={(e) => setComment(e.target.value)} />
        {add.error && <Refused problem={add.error} />}
        <Button type="submit" look="primary" disabled={add.isPending}>
          {t("silence")}
        </Button>
      </form>
    </Dialog>
  );
}
