import { afterAll, afterEach, beforeEach } from "vitest";
import { opened } from "./browser";

// A page goes on listening and drawing until it is closed: those of a test end with it, those of a file with the file.

let ofTheFile = 0;

beforeEach(() => {
  ofTheFile = opened.length;
});
afterEach(() => close(ofTheFile));
afterAll(() => close(0));

/** close closes what was opened after the first few. */
async function close(kept: number): Promise<void> {
  await Promise.all(opened.splice(kept).map((context) => context.close()));
}
