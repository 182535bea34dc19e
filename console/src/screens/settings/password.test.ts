import { expect, test } from "vitest";
import { newPassword } from "./password";

test("passwords are long, and each is another one", () => {
  const all = new Set(Array.from({ length: 100 }, newPassword));
  expect(all.size).toBe(100);
  for (const p of all) expect(p).toMatch(/^[a-zA-Z2-9]{20}$/);
});
