import type { Problem } from "@/api/problem";
import { toast } from "./Toast";

/** tell are the callbacks of an act: what was done is told, and so is why it was not. */
export function tell(done: string, then?: () => void) {
  return {
    onSuccess: () => {
      toast(done);
      then?.();
    },
    onError: (problem: Problem) => toast([problem.detail || problem.code, problem.hint].filter(Boolean).join(" · "), false),
  };
}
