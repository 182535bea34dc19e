import type { Locator, Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { open } from "./browser";

// The main tasks by keyboard alone: no locator is clicked or focused here, only looked at.

let page: Page;

beforeAll(async () => {
  ({ page } = await open());
});

const mostStops = 120;

/** tabTo presses Tab until something has the focus. */
async function tabTo(what: Locator): Promise<void> {
  await what.waitFor();
  for (let i = 0; i < mostStops; i++) {
    if (await what.evaluate((e) => e === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`no key leads to ${String(what)}`);
}

async function press(what: Locator): Promise<void> {
  await tabTo(what);
  await page.keyboard.press("Enter");
}

/** goTo opens a screen by its two keys. */
async function goTo(second: string): Promise<void> {
  await page.keyboard.press("g");
  await page.keyboard.press(second);
}

test("every key is in the help", async () => {
  await page.keyboard.press("?");
  const help = page.getByRole("dialog");
  for (const what of ["Topics", "Messages", "Dead letters", "Pause updates"]) await help.getByText(what, { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "detached" });
});

test("a message is found by its id, edited and replayed", async () => {
  await goTo("m");
  await page.getByRole("searchbox").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("broken-4");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "broken-4" }).waitFor();
  await press(page.getByRole("button", { name: "Edit and replay" }));
  const dialog = page.getByRole("dialog");
  await tabTo(dialog.getByLabel("Body"));
  await page.keyboard.press("Control+a");
  await page.keyboard.type('{"id":4,"user":"bob"}');
  await press(dialog.getByRole("button", { name: "Replay" }));
  await page.getByText("Ready, waits for a worker").waitFor();
});

test("a dead letter is edited or retried by one key", async () => {
  await goTo("m");
  await page.getByRole("searchbox").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("broken-7");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "broken-7" }).waitFor();
  await page.getByRole("button", { name: "Edit and replay" }).waitFor();
  await page.keyboard.press("e");
  const dialog = page.getByRole("dialog", { name: "Edit and replay" });
  await tabTo(dialog.getByRole("button", { name: "Close" }).first());
  await page.keyboard.press("r"); // is not meant for what stands behind a dialog
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByText("Dead:").waitFor();
  await page.keyboard.press("r");
  await page.getByText("Ready, waits for a worker").waitFor();
});

test("dead letters are replayed by a filter", async () => {
  await goTo("d");
  await page.getByRole("searchbox").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type('id in ["broken-5", "broken-6"]');
  await page.keyboard.press("Enter");
  await page.getByText("2 dead letters").waitFor();
  await press(page.getByRole("button", { name: "Retry" }));
  const dialog = page.getByRole("dialog");
  await dialog.getByText("2 would be retried, 0 skipped").waitFor();
  await tabTo(dialog.getByLabel(/^Type/));
  await page.keyboard.type("2");
  await page.keyboard.press("Enter");
  await page.getByText("2 done, 0 skipped").waitFor();
});

test("a topic is found by the palette, paused and resumed", async () => {
  await page.keyboard.press(":");
  await page.getByRole("combobox", { name: "Go to anything" }).waitFor();
  await page.keyboard.type("waste");
  await page.getByRole("option", { name: /^waste/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "waste" }).waitFor();
  await press(page.getByRole("button", { name: "Pause", exact: true }));
  await page.getByText("It is paused.").waitFor();
  await press(page.getByRole("button", { name: "Resume", exact: true }));
  await page.getByText("It is paused.").waitFor({ state: "detached" });
  expect(new URL(page.url()).pathname).toBe("/topics/waste");
});

test("rows are walked and opened", async () => {
  await goTo("t");
  await page.getByRole("table").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.locator("tr:focus").waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("tab", { name: "Charts" }).waitFor();
});
