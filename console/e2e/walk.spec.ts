import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { accessible, everything, open, patience, server, show, setting, shoot, type Watched } from "./browser";

/** screens are the addresses of every screen and tab, and a text that shows that it is there. */
const screens: Record<string, [path: string, there: string]> = {
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
  "limits-rules": ["/limits?tab=rules", "tab"],
  "limits-breakers": ["/limits?tab=breakers", "tab"],
  alerts: ["/alerts", "table"],
  rules: ["/alerts?tab=rules", "table"],
  channels: ["/alerts?tab=channels", "table"],
  wecom: ["/wecom", "table"],
  operations: ["/operations", "tab"],
  actions: ["/operations?tab=actions", "table"],
  settings: ["/settings", "tab"],
  "settings-access": ["/settings?tab=access", "table"],
  nothing: ["/no/such/page", "main"],
  "no-topic": ["/topics/none", "alert"],
  overview: ["/", "figure"], // last: by then it has something to draw
};

async function visit({ page }: Watched, name: string): Promise<void> {
  const [path, there] = screens[name] ?? ["/", "main"];
  await page.goto(server + path);
  await page.getByRole(there as "table").first().waitFor();
  await drawn(page);
}

/** drawn waits until a screen shows what it has asked for. */
async function drawn(page: Page): Promise<void> {
  await page.locator("main > *").first().waitFor();
  await expect.poll(() => page.getByText(/^(Loading|加载中|Searching, .*|正在查找，.*)…/).count(), { timeout: patience }).toBe(0);
}

/** some screens are drawn in every look; make test-console-all draws them all. */
const some = ["kinds", "overview", "topic-charts", "messages", "message", "dead", "worker", "alerts", "wecom", "settings-access"];

const desk = { width: 1280, height: 800 };
const phone = { width: 360, height: 740 };

/** fits: nothing of the page is beyond the window. */
async function fits({ page }: Watched, name: string): Promise<void> {
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(beyond, `${name} is wider than the window`).toBeLessThanOrEqual(0);
}

/** looks are drawn without loading the screen again. */
const looks: Record<string, (page: Page) => Promise<void>> = {
  phone: (page) => page.setViewportSize(phone),
  dark: (page) => page.emulateMedia({ colorScheme: "dark" }),
};

test("every screen is accessible, keeps the policy and fits a phone", async () => {
  const watched = await open();
  const { page } = watched;
  for (const name of Object.keys(screens)) {
    await visit(watched, name);
    await fits(watched, name);
    await accessible(page, name);
    await shoot(page, `${name}-light`);
    for (const [look, draw] of Object.entries(looks)) {
      await draw(page);
      await fits(watched, `${name} ${look}`);
      if (everything) await accessible(page, `${name} ${look}`);
      if (everything || some.includes(name)) await shoot(page, `${name}-${look}`);
      await page.setViewportSize(desk);
      await page.emulateMedia({ colorScheme: "light" });
    }
  }
  expect(watched.faults).toEqual([]);
});

test.each([
  ["zh", { locale: "zh-CN" }],
  ...(everything ? ([["wide", { viewport: { width: 3840, height: 2160 } }]] as const) : []),
] as const)("screens look right: %s", async (look, options) => {
  const watched = await open("/", options);
  for (const name of everything ? Object.keys(screens) : some) {
    await visit(watched, name);
    await fits(watched, `${name} ${look}`);
    await shoot(watched.page, `${name}-${look}`);
    if (everything) await accessible(watched.page, `${name} ${look}`);
  }
  expect(watched.faults).toEqual([]);
});

test("the first screen takes at most 200 KB of code from the network", async () => {
  const { page } = await open();
  const network = await page.context().newCDPSession(page);
  await network.send("Network.enable");
  await network.send("Network.setCacheDisabled", { cacheDisabled: true });
  const paths = new Map<string, string>(); // of requests
  const sizes = new Map<string, number>(); // of paths: without a cache, what is preloaded comes twice
  network.on("Network.responseReceived", ({ requestId, response }) => paths.set(requestId, new URL(response.url).pathname));
  network.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const path = paths.get(requestId);
    if (path !== undefined && !path.startsWith("/api/")) sizes.set(path, encodedDataLength);
  });
  await page.goto(server);
  await page.getByRole("figure").first().waitFor();
  const bytes = [...sizes.values()].reduce((sum, n) => sum + n, 0);
  console.log(`the first screen: ${sizes.size} files, ${bytes} bytes from the network`);
  expect(bytes).toBeGreaterThan(100 << 10);
  expect(bytes).toBeLessThanOrEqual(200 << 10);
});

test("a theme and a language are chosen, and are there again after a reload", async () => {
  const { page } = await open();
  const colour = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await colour();
  await page.getByLabel("Theme").selectOption("dark");
  expect(await colour()).not.toBe(light);
  await page.getByLabel("Language").selectOption("zh-CN");
  await page.getByRole("heading", { name: "概览" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "概览" }).waitFor();
  expect(await colour()).not.toBe(light);
  expect(await page.evaluate(() => document.documentElement.lang)).toBe("zh-CN");
});

test("who wants no motion sees none", async () => {
  const { page } = await open("/", { reducedMotion: "reduce" });
  const moving = await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("@keyframes turn { to { rotate: 360deg } } main, main::before { animation: turn 9s; transition: all 9s; content: '' }");
    document.adoptedStyleSheets.push(sheet);
    return document.getAnimations().length;
  });
  expect(moving).toBe(0);
});

test("a chart says in words and in a table what it draws", async () => {
  const { page } = await open("/topics/orders");
  const chart = page.getByRole("figure", { name: "Messages that wait" });
  await chart.getByText(/^Ready: now \d+, peak \d+$/).waitFor();
  await chart.getByRole("button", { name: "As a table" }).click();
  await chart.getByRole("columnheader", { name: "Dead" }).waitFor();
  expect(await chart.getByRole("row").count()).toBeGreaterThan(2);
  await accessible(page, "chart as a table");
});

test("empty screens teach, and fit a phone", async () => {
  const at = setting("FERRY_CONSOLE_STREAMS");
  const watched = await open("/", { viewport: phone, at });
  const { page } = watched;
  for (const path of ["/dead", "/delayed", "/delayed?tab=schedules", "/limits", "/operations"]) {
    await page.goto(at + path);
    await drawn(page);
    await page.getByRole("main").getByText(/^(No|Nothing) /).first().waitFor();
    await fits(watched, path);
    await shoot(page, `empty${path.replaceAll(/\W+/g, "-")}-phone`);
  }
});

test("a topic is paused and resumed, and a message is published", async () => {
  const { page } = await open("/topics");
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
  const { page } = await open("/topics/waste");
  await page.getByRole("button", { name: "Purge" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("3 messages that wait are removed for good.").waitFor();
  const button = dialog.getByRole("button", { name: "Purge" });
  expect(await button.isDisabled()).toBe(true);
  await dialog.getByRole("textbox").fill("waste");
  await button.click();
  await page.getByText("The purge of waste has begun.").waitFor();
});

/** reading are the words on buttons that change nothing. */
const reading = /^(5 minutes|24 hours|As a table|JSON|Text|Hex|ferry|curl|Go|Copy|Copied|Close|Continue|Try again|Ask|Clear the filter|Show all \d+ reasons)$/;

test("a viewer sees no actions on any screen, and no bodies", async () => {
  const { page, faults } = await open("/", { as: "viewer" });
  for (const [name, [path]] of Object.entries(screens)) {
    await page.goto(server + path);
    await drawn(page);
    // Heads of columns sort, and names of rows open them.
    const buttons = page.locator("main button:not(th button, td button.text-accent), [role=dialog] button");
    const offered = await buttons.evaluateAll((all) => all.filter((b) => b.role !== "tab").map((b) => b.ariaLabel ?? b.textContent.trim()));
    expect(offered.filter((label) => !reading.test(label)), name).toEqual([]);
    expect(await page.locator("a[download]").count(), name).toBe(0);
  }
  await page.goto(`${server}/messages/broken/broken-2`);
  await page.getByText("Bodies are hidden from you").waitFor();
  expect(await page.getByRole("main").textContent()).not.toContain("nobody");
  expect(faults).toEqual([]);
});

test("an expression that is wrong keeps what was typed, and says where", async () => {
  const { page } = await open("/topics/orders?tab=messages");
  await page.getByRole("searchbox").fill("key = = 1");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  expect(await page.getByRole("searchbox").inputValue()).toBe("key = = 1");
  expect(new URL(page.url()).searchParams.get("where")).toBe("key = = 1");
});

test("the overview leads to what died, and shows who did what", async () => {
  const { page } = await open();
  await page.locator("section", { hasText: "Recent actions" }).getByRole("listitem").filter({ hasText: "boss" }).first().waitFor();
  await page.getByRole("main").getByRole("link", { name: "it has 8 dead letters" }).click();
  await page.getByText("8 dead letters").waitFor();
  const { searchParams } = new URL(page.url());
  expect([searchParams.get("topic"), searchParams.get("group")]).toEqual(["broken", "default"]);
  await page.getByLabel("By").selectOption("day");
  await page.getByRole("region", { name: "Day" }).getByRole("button").first().click();
  await expect.poll(() => page.getByRole("searchbox").inputValue(), { timeout: patience }).toContain("died_at >= date(");
  await page.getByText("8 dead letters").waitFor();
});

test("keys lead to screens, and help shows them", async () => {
  const { page } = await open();
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

const lines = readFileSync(new URL("corpus.txt", import.meta.url), "utf8").trim().split("\n");

/** free are the fields of answers in which anything may stand. */
const free = /^(id|key|topic|group|topics|groups|headers|headers_base64|body|decoded|error|detail|text|title|name|who|by|actor|member|instance|host|version|worker|stack|problem|fingerprint|account|subject|rule|when|what|filter|address|to|destinations|last_error|limit|hint|environment|driver|zone|spec|content_type|ref|dedup_id|args|why|advice|action|channel|channels|reason|undecoded|messages|acknowledged|comment)$/;

/** hostile is an answer in which every free text is a line of the corpus, one after the other. */
function hostile(answer: unknown, next: () => string, here = false): unknown {
  if (typeof answer === "string") return here ? next() : answer;
  if (Array.isArray(answer)) return answer.map((one) => hostile(one, next, here));
  if (answer === null || typeof answer !== "object") return answer;
  const fields = Object.entries(answer).map(([name, value]): [string, unknown] => [name, hostile(value, next, free.test(name))]);
  return here ? Object.fromEntries([...fields, [next(), next()]]) : Object.fromEntries(fields);
}

test("whatever a server answers is text, on every screen", async () => {
  const watched = await open();
  const { page } = watched;
  let at = 0;
  const next = () => lines[at++ % lines.length] ?? "";
  await page.route(/\/api\/v1\/(?!identity|.*\/(events|tail)(\?|$))/, async (route) => {
    const answer = await route.fetch();
    return answer.ok() ? route.fulfill({ response: answer, json: hostile(await answer.json(), next) }) : route.fulfill({ response: answer });
  });
  const unseen = new Set(lines);
  for (const [name, [path]] of Object.entries(screens)) {
    await page.goto(server + path);
    await drawn(page);
    const { text, bad } = await page.evaluate(() => ({
      text: document.body.innerText,
      bad: [...document.querySelectorAll("*")]
        .filter((e) => /^(IFRAME|OBJECT|EMBED|BASE|VIDEO|AUDIO|MARQUEE|PORTAL|MATH)$/i.test(e.tagName) || e.getAttributeNames().some((n) => n.startsWith("on") || (/^(href|src|srcset|action|formaction|data|background|xlink:href)$/.test(n) && !/^(\/|#|http:)/.test(e.getAttribute(n) ?? ""))))
        .map((e) => e.outerHTML.slice(0, 200)),
    }));
    expect(bad, name).toEqual([]);
    for (const line of unseen) if (text.includes(line)) unseen.delete(line);
  }
  expect([...unseen], "lines that no screen shows").toEqual([]);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  for (const path of ["/topics?q=", "/topics/hostile?tab=messages&where=", "/topics/", "/messages?q=", "/messages/hostile/", "/dead?topic=hostile&kind="]) {
    for (const line of lines.slice(0, 3)) {
      await show(page, path + encodeURIComponent(line));
      await page.getByRole("main").waitFor();
    }
  }
  expect(watched.faults).toEqual([]);
});

test("a session that ended is begun again where one was", async () => {
  const { page } = await open("/topics?q=ord");
  await page.getByRole("table").waitFor();
  await page.context().clearCookies();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("boss");
  await dialog.getByLabel("Password").fill(setting("FERRY_CONSOLE_PASSWORD"));
  await dialog.getByRole("button", { name: "Log in" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(page.url()).toContain("q=ord");
});
