import { readFileSync } from "node:fs";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible, everything, launch, open, patience, server, show, setting, shoot, type Watched } from "./browser";

let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** screens are the addresses of every screen and tab, and a text that shows that it is there. */
const screens: Record<string, [path: string, there: string]> = {
  overview: ["/", "heading"],
  topics: ["/topics", "table"],
  "topic-charts": ["/topics/orders", "figure"],
  "topic-messages": ["/topics/orders?tab=messages", "table"],
  "topic-groups": ["/topics/orders?tab=groups", "table"],
  "topic-dead": ["/topics/orders?tab=dead", "tab"],
  "topic-config": ["/topics/orders?tab=config", "tab"],
  messages: ["/messages", "table"],
  "messages-none": ["/messages?q=nothing-has-this", "status"],
  message: ["/messages/broken/broken-2", "list"],
  "no-message": ["/messages/broken/none", "alert"],
  dead: ["/dead", "table"],
  kinds: [`/dead?q=${encodeURIComponent('error contains "timeout" || error contains "such user"')}`, "table"],
  "dead-broken": ["/dead?topic=broken", "table"],
  "dead-none": ["/dead?topic=orders", "combobox"],
  delayed: ["/delayed?topic=later", "table"],
  schedules: ["/delayed?tab=schedules", "table"],
  workers: ["/workers", "table"],
  worker: ["/workers?member=billing-1", "dialog"],
  groups: ["/groups", "table"],
  limits: ["/limits", "tab"],
  "limits-check": ["/limits?tab=check&limit=calls&key=ann", "status"],
  "limits-breakers": ["/limits?tab=breakers", "tab"],
  operations: ["/operations", "tab"],
  actions: ["/operations?tab=actions", "table"],
  settings: ["/settings", "tab"],
  "settings-access": ["/settings?tab=access", "table"],
  nothing: ["/no/such/page", "main"],
  "no-topic": ["/topics/none", "alert"],
};

async function visit({ page }: Watched, name: string): Promise<void> {
  const [path, there] = screens[name] ?? ["/", "main"];
  await page.goto(server + path);
  await page.getByRole(there as "table").first().waitFor();
  await expect.poll(() => page.getByText(/^(Loading|加载中)…$/).count(), { timeout: patience }).toBe(0);
}

test("every screen is accessible and keeps the policy", async () => {
  const watched = await open(browser);
  for (const name of Object.keys(screens)) {
    await visit(watched, name);
    await accessible(watched.page, name);
    await shoot(watched.page, `${name}-light`);
  }
  expect(watched.faults).toEqual([]);
});

/** some screens are drawn in every look; make test-console-all draws them all. */
const some = ["kinds", "overview", "topic-charts", "messages", "message", "dead", "worker"];

test.each([
  ["dark", { colorScheme: "dark" }],
  ["zh", { locale: "zh-CN" }],
  ["phone", { viewport: { width: 360, height: 740 } }],
  ...(everything ? [["wide", { viewport: { width: 3840, height: 2160 } }]] : []),
] as [string, BrowserContextOptions][])("screens look right: %s", async (look, options) => {
  const watched = await open(browser, options);
  for (const name of everything ? Object.keys(screens) : some) {
    await visit(watched, name);
    const wide = await watched.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(wide, `${name} is wider than the window`).toBeLessThanOrEqual(0);
    await shoot(watched.page, `${name}-${look}`);
    if (everything) await accessible(watched.page, `${name} ${look}`);
  }
  expect(watched.faults).toEqual([]);
});

test("empty screens teach, and fit a phone", async () => {
  const at = setting("FERRY_CONSOLE_STREAMS");
  const { page } = await open(browser, { viewport: { width: 360, height: 740 } }, "boss", at);
  for (const path of ["/dead", "/delayed", "/delayed?tab=schedules", "/limits", "/operations"]) {
    await page.goto(at + path);
    await expect.poll(() => page.getByText(/^(Loading|加载中)…$/).count(), { timeout: patience }).toBe(0);
    await page.getByRole("main").getByText(/^(No|Nothing) /).first().waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), path).toBeLessThanOrEqual(0);
    await shoot(page, `empty${path.replaceAll(/\W+/g, "-")}-phone`);
  }
});

test("a topic is paused and resumed, and a message is published", async () => {
  const { page } = await open(browser);
  await page.goto(`${server}/topics`);
  await page.getByRole("link", { name: "tasks" }).click();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByText("It is paused.").waitFor();
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await page.getByText("It is paused.").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Publish" }).click();
  await page.getByLabel("Key (optional)").fill("from-the-console");
  await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();
  await page.getByText(/Published as /).waitFor();
  await page.getByRole("tab", { name: "Messages" }).click();
  await page.getByRole("cell", { name: "from-the-console" }).first().waitFor();
});

test("a purge counts first, and takes the name of the topic", async () => {
  const { page } = await open(browser);
  await page.goto(`${server}/topics/waste`);
  await page.getByRole("button", { name: "Purge" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("3 messages that wait are removed for good.").waitFor();
  const button = dialog.getByRole("button", { name: "Purge" });
  expect(await button.isDisabled()).toBe(true);
  await dialog.getByRole("textbox").fill("waste");
  await button.click();
  await page.getByText("The purge of waste has begun.").waitFor();
});

/** acting are the words on buttons that change something. */
const acting = /^(Pause|Resume|Purge|Publish|Publish again|Reset|Retry|Edit and replay|Move|Remove|Run now|Run all now|Reschedule|Cancel|Cancel the message|Quiet|Set|Trigger|Block a key|Unblock|Acknowledge|Silence|Make a token|Revoke)$/;

test("a viewer sees no actions", async () => {
  const watched = await open(browser, {}, "viewer");
  for (const name of ["topic-charts", "topic-groups", "message", "dead", "delayed", "schedules", "worker", "groups", "operations", "settings"]) {
    await visit(watched, name);
    const offered = await watched.page.getByRole("button", { name: acting }).allTextContents();
    expect(offered, name).toEqual([]);
  }
});

test("an expression that is wrong keeps what was typed, and says where", async () => {
  const { page } = await open(browser);
  await page.goto(`${server}/topics/orders?tab=messages`);
  await page.getByRole("searchbox").fill("key = = 1");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("searchbox").inputValue()).toBe("key = = 1");
  expect(new URL(page.url()).searchParams.get("where")).toBe("key = = 1");
});

test("keys lead to screens, and help shows them", async () => {
  const { page } = await open(browser);
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.getByRole("table").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Pause updates").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press(":");
  await page.getByRole("combobox", { name: "Go to anything" }).fill("wast");
  await page.getByRole("option", { name: /^waste/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "waste" }).waitFor();
});

test("payloads are text, on every screen that shows them", async () => {
  const watched = await open(browser);
  const { page } = watched;
  await page.goto(`${server}/topics/hostile?tab=messages`);
  await page.getByRole("table").waitFor();
  const lines = readFileSync(new URL("corpus.txt", import.meta.url), "utf8").trim().split("\n");
  await page.getByText(`${lines.length} found`).waitFor();
  await page.getByRole("row").nth(1).getByRole("button").click();
  await page.getByRole("dialog").waitFor();
  for (const path of ["/topics?q=", "/topics/hostile?tab=messages&where=", "/topics/", "/messages?q=", "/messages/hostile/", "/dead?topic=hostile&kind="]) {
    for (const line of lines.slice(0, 3)) {
      await show(page, path + encodeURIComponent(line));
      await page.getByRole("main").waitFor();
    }
  }
  expect(watched.faults).toEqual([]);
});

test("a session that ended is begun again where one was", async () => {
  const { page } = await open(browser);
  await page.goto(`${server}/topics?q=ord`);
  await page.getByRole("table").waitFor();
  await page.context().clearCookies();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("boss");
  await dialog.getByLabel("Password").fill(setting("FERRY_CONSOLE_PASSWORD"));
  await dialog.getByRole("button", { name: "Log in" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(page.url()).toContain("q=ord");
});
