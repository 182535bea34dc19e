import { expect, test } from "vitest";
import { worstFirst } from "./order";

const alert = { rule: "r", notices: 0, since: "2026-01-01T00:00:00Z" } as const;

test("what fires and is worse stands above", () => {
  const all = [
    { ...alert, subject: "over", status: "resolved", severity: "emergency" },
    { ...alert, subject: "soon", status: "pending", severity: "critical" },
    { ...alert, subject: "mild", status: "firing", severity: "info" },
    { ...alert, subject: "bad", status: "firing", severity: "page" },
    { ...alert, subject: "bad and new", status: "firing", severity: "page", since: "2026-01-02T00:00:00Z" },
  ] as const;
  expect([...all].sort(worstFirst).map((a) => a.subject)).toEqual(["bad and new", "bad", "mild", "soon", "over"]);
});
