import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible, open, server, shoot, type Watched } from "./browser";

// Alerts, silences, rules, channels, notifications, and customer service of WeCom.

let watched: Watched;
let page: Page;

beforeAll(async () => {
  watched = await open();
  page = watched.page;
});

test("an alert that fires is opened, acknowledged and silenced", async () => {
  await page.goto(`${server}/alerts`);
  const row = page.getByRole("row", { name: /orders wait/ });
  await row.getByText("Firing").waitFor();
  await page.getByRole("row", { name: /letters pile up/ }).getByText("Pending").waitFor();
  await accessible(page, "alerts");
  await shoot(page, "alerts-light");
  await row.getByRole("button", { name: "orders wait" }).click();
  const drawer = page.getByRole("dialog", { name: /orders wait/ });
  await drawer.getByText(/orders has \d+ messages, more than 10/).first().waitFor();
  await drawer.getByText("queue_depth > threshold").waitFor();
  await drawer.getByRole("button", { name: "Acknowledge" }).click();
  await drawer.getByRole("button", { name: "Acknowledge" }).waitFor({ state: "detached" });
  await drawer.getByRole("listitem").getByText("Acknowledged").waitFor();
  await accessible(page, "alert");
  await shoot(page, "alert-light");
  await page.keyboard.press("Escape");
  await row.getByRole("cell", { name: "boss" }).waitFor();

  await row.getByRole("button", { name: "Silence" }).click();
  const dialog = page.getByRole("dialog", { name: "New silence" });
  await dialog.getByLabel(/^For how long/).fill("soon");
  await dialog.getByRole("button", { name: "Silence" }).click();
  await dialog.getByRole("alert").waitFor();
  await dialog.getByLabel(/^For how long/).fill("90m");
  await dialog.getByLabel(/^Reason/).fill("a deployment");
  await dialog.getByRole("button", { name: "Silence" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("tab", { name: "Silences" }).click();
  const silence = page.getByRole("row", { name: /a deployment/ });
  await silence.getByText("orders/default").waitFor();
  await accessible(page, "silences");
  await shoot(page, "silences-light");
  await silence.getByRole("button", { name: "End" }).click();
  await silence.waitFor({ state: "detached" });
  await page.getByRole("tab", { name: "History" }).click();
  await page.getByRole("row", { name: /orders wait/ }).getByText("Fired").first().waitFor();
  await accessible(page, "alert-history");
});

test("a rule says what it says now, is tested, changed and removed", async () => {
  await page.goto(`${server}/alerts?tab=rules&q=orders`);
  await page.getByRole("button", { name: "orders wait" }).click();
  const drawer = page.getByRole("dialog", { name: "orders wait" });
  await drawer.getByText("Fires for 1").waitFor();
  await accessible(page, "rule");
  await shoot(page, "rule-light");
  await drawer.getByRole("button", { name: "Send a test" }).click();
  await page.getByRole("row", { name: /hook/ }).getByText("Sent", { exact: true }).waitFor();
  expect(new URL(page.url()).searchParams.get("tab")).toBe("notifications");
  await accessible(page, "receipt");
  await shoot(page, "receipt-light");

  await page.goto(`${server}/alerts?tab=rules`);
  await page.getByRole("button", { name: "New rule" }).click();
  const form = page.getByRole("dialog", { name: "New rule" });
  await form.getByLabel("Name").fill("tasks wait");
  await form.getByLabel(/^Condition/).fill("queue_depth > > 1");
  await form.getByRole("button", { name: "Keep" }).click();
  await form.getByRole("alert").getByText(/column/).waitFor();
  expect(await form.getByLabel(/^Condition/).inputValue()).toBe("queue_depth > > 1");
  await accessible(page, "rule form");
  await shoot(page, "rule-form-light");
  await form.getByLabel(/^Condition/).fill("queue_depth > threshold");
  await form.getByLabel("Threshold", { exact: true }).fill("1000000");
  await form.getByRole("button", { name: "Keep" }).click();
  await form.waitFor({ state: "detached" });
  const row = page.getByRole("row", { name: /tasks wait/ });
  await row.getByText("Does not hold").waitFor();
  await row.getByRole("button", { name: "tasks wait" }).click();
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog", { name: "Remove tasks wait" }).getByRole("button", { name: "Remove" }).click();
  await page.getByText("There is no such rule").waitFor();
});

test("a channel shows whether it works, and a notification is sent later and called back", async () => {
  await page.goto(`${server}/alerts?tab=channels`);
  await page.getByRole("row", { name: /hook/ }).getByRole("button", { name: "Send a test" }).click();
  const test = page.getByRole("dialog", { name: "Test hook" });
  await test.getByLabel("To").fill("nights");
  await test.getByRole("button", { name: "Send" }).click();
  await page.getByRole("row", { name: /nights/ }).getByText("Sent", { exact: true }).waitFor();

  await page.getByRole("button", { name: "Send a notification" }).click();
  const dialog = page.getByRole("dialog", { name: "Send a notification" });
  await dialog.getByLabel("To").fill("ops");
  await dialog.getByLabel("Title").fill("Maintenance");
  await dialog.getByLabel(/^After/).fill("2h");
  await accessible(page, "send");
  await dialog.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("0 of 1 reached, 0 failed, 0 called back").waitFor();
  await page.getByRole("button", { name: "Call back" }).click();
  await page.getByText("0 of 1 reached, 0 failed, 1 called back").waitFor();
  await page.getByRole("tab", { name: "Channels" }).click();
  await page.getByRole("row", { name: /hook/ }).getByText("Last one was taken").waitFor();
  await accessible(page, "channels");
  await shoot(page, "channels-light");
});

test("customer service shows its accounts, what waits, and what is wrong", async () => {
  await page.goto(`${server}/wecom`);
  await page.getByRole("row", { name: /wkAJ2G/ }).getByText("Pulled").waitFor();
  await accessible(page, "wecom");
  await shoot(page, "wecom-light");
  const broken = { accounts: [{ account: "wk1", problem: "45009: api freq out of limit" }], lag: { pulls: 12, messages: { "wecom-<b>": 3 } } };
  await page.route("**/api/v1/wecom/accounts", (route) => route.fulfill({ json: broken }));
  await page.getByText("The last pull failed").waitFor();
  await page.getByText("45009: api freq out of limit").waitFor();
  await page.getByRole("link", { name: "wecom-<b>" }).waitFor();
  await accessible(page, "wecom that fails");
  await shoot(page, "wecom-broken-light");
  await page.unroute("**/api/v1/wecom/accounts");
});

test("a viewer is told, and offered nothing", async () => {
  const { page: other } = await open("/alerts", { as: "viewer" });
  await other.getByRole("row", { name: /orders wait/ }).waitFor();
  expect(await other.getByRole("button", { name: /^(Acknowledge|Silence)$/ }).count()).toBe(0);
  await other.goto(`${server}/alerts?tab=rules&rule=orders+wait`);
  await other.getByText("Fires for 1").last().waitFor();
  expect(await other.getByRole("button", { name: /^(New rule|Send a test|Change)$/ }).count()).toBe(0);
});

afterAll(() => expect(watched.faults).toEqual([]));
