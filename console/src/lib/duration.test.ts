import { expect, test } from "vitest";
import { seconds } from "./duration";

test.each([
  ["0s", 0],
  ["1m30s", 90],
  ["250ms", 0.25],
  ["2h0m0.5s", 7200.5],
  ["", 0],
  ["soon", 0],
])("%s", (text, want) => expect(seconds(text)).toBeCloseTo(want));
