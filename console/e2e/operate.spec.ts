import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { accessible, api, everything, open, patience, server, shoot } from "./browser";

// What operators do besides topics and messages: limits, workers, groups, delayed messages, schedules, tokens.

let page: Page;

beforeAll(async () => {
  ({ page } = await open());
});

/** publish sends a message with a key, from its topic. */
async function publish(topic: string, key: string): Promise<void> {
  await page.goto(`${server}/topics/${topic}`);
  await page.getByRole("button", { name: "Publish" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Key (optional)").fill(key);
  await dialog.getByRole("button", { name: "Publish" }).click();
  await dialog.waitFor({ state: "detached" });
}

test("a key is blocked, its messages wait, and it is let in again", async () => {
  await page.goto(`${server}/limits`);
  await page.getByRole("button", { name: "Block a key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Key").fill("mallory");
  await dialog.getByLabel("Limit").fill("calls");
  await dialog.getByRole("button", { name: "Block", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("row", { name: /mallory/ }).getByText("Blocked").waitFor();
  await page.goto(`${server}/limits?tab=check&limit=calls&key=mallory`);
  await page.getByText("It would not: the key is blocked").waitFor();

  await publish("calls", "mallory");
  await page.goto(`${server}/topics/calls?tab=messages&where=${encodeURIComponent('key == "mallory"')}`);
  await page.getByRole("row", { name: /mallory/ }).first().waitFor();

  await page.goto(`${server}/limits`);
  await page.getByRole("row", { name: /mallory/ }).getByRole("button", { name: "Unblock" }).click();
  await dialog.getByLabel(/^Reason/).fill("a false alarm");
  await dialog.getByRole("button", { name: "Unblock" }).click();
  await page.getByText("mallory is let in again.").waitFor();
  await page.getByRole("row", { name: /mallory/ }).waitFor({ state: "detached" });
  await page.goto(`${server}/limits?tab=check&limit=calls&key=mallory`);
  await page.getByText("It would pass").waitFor();
  await page.getByRole("tab", { name: "Changes" }).click();
  await page.getByRole("cell", { name: "a false alarm" }).waitFor();
});

test("a breaker is forced open, messages wait behind it, and it is left to itself", async () => {
  await publish("calls", "before"); // messages tell of a breaker, and have it obey
  await page.goto(`${server}/limits?tab=breakers`);
  const row = page.getByRole("row", { name: /bank/ });
  await row.getByText("Closed").waitFor();
  await row.getByRole("button", { name: "Force open" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Reason/).fill("the bank asks for a pause");
  await dialog.getByRole("button", { name: "Force open" }).click();
  await page.getByText("Breaker bank: each process obeys with its next message.").waitFor();
  await row.getByText("asked to: Force open").or(row.getByText("forced")).first().waitFor();
  const obeys = async () => { // a process learns of it with a message, and tells with one that comes then
    await api(page, "post", "/topics/calls/messages", { key: "behind", body: "x" });
    await page.goto(`${server}/limits?tab=breakers`);
    return row.getByText("forced").waitFor({ timeout: 3000 }).then(() => true, () => false);
  };
  await expect.poll(obeys, { timeout: patience, interval: 100 }).toBe(true);
  await row.getByText("Open", { exact: true }).waitFor();
  await shoot(page, "breaker-forced-light");
  const behind = `${server}/messages?topic=calls&q=${encodeURIComponent('key == "behind"')}`;
  const waits = async () => { // a message that comes while the process still learns of it passes
    await api(page, "post", "/topics/calls/messages", { key: "behind", body: "x" });
    await page.goto(behind);
    const retrying = page.getByRole("row", { name: /behind/ }).getByText("Retrying").first();
    return retrying.waitFor({ timeout: 3000 }).then(() => true, () => false);
  };
  await expect.poll(waits, { timeout: patience, interval: 100 }).toBe(true);
  await page.goto(`${server}/limits?tab=breakers`);
  await row.getByRole("button", { name: "Leave to itself" }).click();
  await dialog.getByRole("button", { name: "Leave to itself" }).click();
  const closed = async () => {
    await api(page, "post", "/topics/calls/messages", { key: "after", body: "x" });
    return row.getByText("Closed").count();
  };
  await expect.poll(closed, { timeout: patience, interval: 1000 }).toBe(1);
  await page.goto(behind);
  await page.getByText("Nothing fits").waitFor();
});

test("a topic is configured, and what was typed stays if it is refused", async () => {
  await page.goto(`${server}/topics/removed?tab=config`);
  await page.getByRole("button", { name: "Change" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Most messages/).fill("5000");
  if (!everything) {
    await dialog.getByLabel(/^Settled messages are kept for/).fill("soon");
    await dialog.getByRole("button", { name: "Change" }).click();
    await dialog.getByRole("alert").waitFor();
    expect(await dialog.getByLabel(/^Most messages/).inputValue()).toBe("5000");
    await dialog.getByLabel(/^Settled messages are kept for/).fill("30m");
    await accessible(page, "configure");
    await shoot(page, "configure-light");
  }
  await dialog.getByRole("button", { name: "Change" }).click();
  await page.getByText("removed is changed.").waitFor();
  await page.getByText("5,000", { exact: true }).waitFor();
  if (!everything) await page.getByText("30m", { exact: true }).waitFor();
});

test("a group is paused, resumed and reset after a count", async () => {
  await page.goto(`${server}/groups?q=kept`);
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("cell", { name: "Paused" }).waitFor();
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await page.getByRole("cell", { name: "Paused" }).waitFor({ state: "detached" });
  if (everything) {
    // Redis forgets what is settled: there is nothing to go back to, and it is not offered.
    expect(await page.getByRole("button", { name: "Reset" }).count()).toBe(0);
    return;
  }
  await page.getByRole("button", { name: "Reset" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Start from").selectOption("end");
  await dialog.getByRole("button", { name: "Count first" }).click();
  await dialog.getByRole("textbox").fill("default");
  await dialog.getByRole("button", { name: "Reset" }).click();
  await dialog.getByText("Done", { exact: true }).waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByRole("row", { name: /kept/ }).getByRole("cell", { name: "0", exact: true }).first().waitFor();
  await page.goto(`${server}/operations`);
  await page.getByRole("button", { name: "group.reset" }).first().click();
  await page.getByRole("dialog").getByText("What it was told").waitFor();
  await page.goto(`${server}/operations?tab=actions`);
  await page.getByRole("button", { name: "Verify the chain" }).click();
  await page.getByText(/the chain is whole/).waitFor();
});

test("a delayed message is rescheduled, run and cancelled, by keyboard alone", async () => {
  await page.goto(`${server}/delayed?topic=later`);
  await page.getByText(/^\d of 6 listed are due within an hour\.$/).waitFor();
  const row = page.getByRole("row", { name: /later-5/ });
  await row.getByRole("button", { name: "Reschedule" }).focus();
  await page.keyboard.press("Enter");
  await page.getByLabel(/^Due after/).waitFor();
  await page.keyboard.press("Tab"); // the dialog begins at its close button
  await page.getByLabel(/^Due after/).fill("90h");
  await page.keyboard.press("Enter");
  await row.getByText("in 4 days").waitFor();
  await row.getByRole("button", { name: "Cancel" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove the message" }).focus();
  await page.keyboard.press("Enter");
  await row.waitFor({ state: "detached" });
  const other = page.getByRole("row", { name: /later-4/ });
  await other.getByRole("button", { name: "Run now" }).focus();
  await page.keyboard.press("Enter");
  await other.waitFor({ state: "detached" });
});

test("what a filter selects becomes due, after a count and a typed name", async () => {
  await page.goto(`${server}/delayed?topic=later&where=${encodeURIComponent('key == "later-0" || key == "later-1"')}`);
  await page.getByRole("button", { name: "Run all now" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/^2 delayed messages of later become due/).waitFor();
  await dialog.getByRole("textbox").fill("later");
  await dialog.getByRole("button", { name: "Run all now" }).click();
  await dialog.getByText(/^2 done, 0 skipped/).waitFor();
});

test("what a filter selects is cancelled, delayed or not, after a count and a typed name", async () => {
  await page.goto(`${server}/delayed?topic=later&where=${encodeURIComponent('key == "later-2"')}`);
  await page.getByRole("button", { name: "Cancel all" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/^1 delayed message of later is removed/).waitFor();
  await dialog.getByRole("textbox").fill("later");
  await dialog.getByRole("button", { name: "Cancel all" }).click();
  await dialog.getByText(/^1 done, 0 skipped/).waitFor();
  for (const key of ["doomed", "doomed", "spared"]) await publish("removed", key);
  await page.goto(`${server}/messages?topic=removed&q=${encodeURIComponent('key == "doomed"')}`);
  await page.getByText("2 found").waitFor();
  await page.getByRole("button", { name: "Remove all" }).click();
  await dialog.getByText(/^2 messages of removed that wait are removed for good/).waitFor();
  await dialog.getByRole("textbox").fill("removed");
  await dialog.getByRole("button", { name: "Remove all" }).click();
  await dialog.getByText(/^2 done, 0 skipped/).waitFor();
  await page.goto(`${server}/messages?topic=removed`);
  await page.getByText("1 found").waitFor();
});

test("a schedule shows its next runs, is paused and triggered", async () => {
  await page.goto(`${server}/delayed?tab=schedules`);
  await page.getByRole("button", { name: "daily-report" }).click();
  await page.getByRole("dialog").getByRole("listitem").nth(4).waitFor();
  await page.keyboard.press("Escape");
  const row = page.getByRole("row", { name: /daily-report/ });
  await row.getByRole("button", { name: "Trigger" }).click();
  await page.getByText("daily-report has published its message.").waitFor();
  await row.getByRole("button", { name: "Pause", exact: true }).click();
  await row.getByRole("cell", { name: "Paused" }).waitFor();
});

test("a worker is quieted and resumed, and a message of it is cancelled", async () => {
  await page.goto(`${server}/workers`);
  await page.getByRole("button", { name: "billing-1" }).click();
  const dialog = page.getByRole("dialog", { name: "billing-1" });
  await dialog.getByRole("button", { name: "Quiet", exact: true }).click();
  const quiet = dialog.getByRole("row", { name: /calls/ }).getByRole("cell", { name: "Quiet" });
  await quiet.waitFor();
  await dialog.getByRole("button", { name: "Resume", exact: true }).click();
  await quiet.waitFor({ state: "detached" });
  await dialog.getByLabel("At once").fill("8");
  await dialog.getByRole("button", { name: "Set" }).click();
  await page.getByText("billing-1 runs 8 at once.").waitFor();
  const running = dialog.getByRole("row", { name: /slow/ });
  await running.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Drop the message" }).click();
  await running.waitFor({ state: "detached" });
});

test("a token is made, shown once and revoked", async () => {
  await page.goto(`${server}/settings?tab=access`);
  await page.getByRole("button", { name: "Make a token" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("What it is for").fill("from-the-console");
  await dialog.getByRole("button", { name: "Make", exact: true }).click();
  await dialog.getByText("It is not shown again.").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByRole("row", { name: /from-the-console/ }).getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByText("from-the-console is revoked.").waitFor();
  await page.getByRole("row", { name: /from-the-console/ }).waitFor({ state: "detached" });
});
