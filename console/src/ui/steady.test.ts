import { expect, test } from "vitest";
import { steady } from "./steady";

const row = (id: string, n: number) => ({ id, n });

test("rows stay where they were, with new values", () => {
  const found = steady([row("a", 1), row("b", 1), row("c", 1)], [row("new", 2), row("c", 2), row("a", 2), row("newer", 2)]);
  expect(found.rows).toEqual([row("a", 2), row("b", 1), row("c", 2)]);
  expect([...found.gone]).toEqual(["b"]);
  expect(found.fresh).toBe(2);
});
