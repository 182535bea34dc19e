import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { accessible, api, open, server, setting, shoot } from "./browser";

// What goes wrong has a state of its own, and nothing that was typed is lost.

let page: Page;

beforeAll(async () => {
  ({ page } = await open());
});

const [fragile = "", control = ""] = setting("FERRY_CONSOLE_OUTAGE").split(" ");

/** turn starts or kills the server or its Redis. */
async function turn(what: "server" | "redis", up: boolean): Promise<void> {
  const answer = await fetch(`${control}/${what}?up=${up}`);
  expect(answer.status, await answer.text()).toBe(200);
}

test.each(["server", "redis"] as const)("when the %s is gone, what was there stays, and comes to life again", async (what) => {
  const { page: own } = await open("/topics/broken", { at: fragile });
  await own.getByText("production", { exact: true }).waitFor();
  await own.getByRole("button", { name: "Publish" }).click();
  const body = own.getByRole("dialog").getByLabel("Body");
  await body.fill("typed before");
  await turn(what, false);
  await own.getByRole("dialog").getByRole("button", { name: "Publish" }).click();
  await own.getByText(/What you see is .* old; next try in/).waitFor();
  expect(await body.inputValue()).toBe("typed before");
  await own.keyboard.press("Escape");
  await own.getByRole("heading", { name: "broken" }).waitFor();
  expect(await own.getByRole("main").evaluate((e) => getComputedStyle(e).filter)).toContain("grayscale");
  await accessible(own, `no ${what}`);
  await shoot(own, `gone-${what}-light`);
  await turn(what, true);
  await own.getByRole("alert").waitFor({ state: "detached" });
  await own.getByRole("button", { name: "Publish" }).waitFor();
});

/** refuse has the server answer what a path asks as if it refused it. */
async function refuse(path: RegExp, status: number, detail: string): Promise<void> {
  await page.route(path, (route) => {
    const headers = { "Content-Type": "application/problem+json", "Retry-After": "7" };
    return route.fulfill({ status, headers, body: JSON.stringify({ status, code: "refused", detail, request_id: "r-1" }) });
  });
}

test.each([
  [403, "You may not"],
  [409, "Somebody else was faster"],
  [429, "Too many requests"],
] as const)("%i says what it means, and keeps what was typed", async (status, says) => {
  await page.goto(`${server}/topics/tasks`);
  await page.getByRole("button", { name: "Publish" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Body").fill("typed");
  await refuse(/\/topics\/tasks\/messages$/, status, "as the server says");
  await dialog.getByRole("button", { name: "Publish" }).click();
  await dialog.getByText(says).waitFor();
  await dialog.getByText("as the server says").waitFor();
  expect(await dialog.getByLabel("Body").inputValue()).toBe("typed");
  await accessible(page, String(status));
  await shoot(page, `refused-${status}-light`);
  await page.unrouteAll();
});

test("a session that ends while somebody types is begun again, and nothing is lost", async () => {
  const { page: own } = await open("/topics/tasks");
  await own.getByRole("button", { name: "Publish" }).click();
  // By then the page may have found out by itself, and ask over the dialog, which is hidden from readers meanwhile.
  const dialog = own.getByRole("dialog", { name: /Publish/, includeHidden: true });
  await dialog.getByLabel("Body").fill("typed before the end");
  await own.context().clearCookies();
  await dialog.locator("form").evaluate((form: HTMLFormElement) => form.requestSubmit());
  const login = own.getByRole("dialog").filter({ has: own.getByLabel("Password") });
  await login.getByLabel("Name").fill("boss");
  await login.getByLabel("Password").fill(setting("FERRY_CONSOLE_PASSWORD"));
  await login.getByRole("button", { name: "Log in" }).click();
  await login.waitFor({ state: "detached" });
  expect(await dialog.getByLabel("Body").inputValue()).toBe("typed before the end");
  await dialog.getByRole("button", { name: "Publish" }).click();
  await own.getByText(/Published as /).waitFor();
});

test("an address that leads nowhere says so, and leads back", async () => {
  await page.goto(`${server}/no/such/page`);
  await page.getByText("There is no such page").waitFor();
  await page.getByRole("link", { name: "To the overview" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
});

test("a screen that does not come says so, and what is around it goes on", async () => {
  const { page: own } = await open("/topics");
  await own.route(/\/assets\/view-/, (route) => route.abort());
  await own.getByRole("link", { name: "Workers" }).click();
  await own.getByText("This screen has failed").waitFor();
  await accessible(own, "a screen that fails");
  await own.unrouteAll();
  await own.getByRole("button", { name: "Load the page again" }).click();
  await own.getByRole("heading", { name: "Workers" }).waitFor();
});

test("a message that is removed while somebody looks at it is said to be gone", async () => {
  const { id } = (await api(page, "post", "/topics/tasks/messages", { body: "short", delay: "1h" })) as { id: string };
  await page.goto(`${server}/messages/tasks/${id}`);
  await page.getByRole("heading", { name: id }).waitFor();
  await api(page, "delete", `/topics/tasks/messages/${id}`);
  await page.getByText("This message is not here any more").waitFor();
  await page.getByRole("link", { name: "Look for it in every topic" }).click();
  await page.getByText("Nothing fits").waitFor();
});

test("what is not there does not flicker while it is asked for again", async () => {
  await page.goto(`${server}/messages/live/never-there`);
  await page.getByText("This message is not here").waitFor();
  const loading = await page.evaluateHandle(() => {
    const seen: string[] = [];
    new MutationObserver(() => /Loading/.test(document.body.textContent) && seen.push("Loading")).observe(document.body, { childList: true, subtree: true, characterData: true });
    return seen;
  });
  const asked = page.waitForResponse((r) => r.url().includes("never-there"));
  await api(page, "post", "/topics/live/messages", { body: "x" });
  await asked;
  await page.getByText("This message is not here").waitFor();
  expect(await loading.jsonValue()).toEqual([]);
});

test("another origin cannot act", async () => {
  const { page: own } = await open();
  await own.route("http://elsewhere.example/", (route) => route.fulfill({ contentType: "text/html", body: "<p>elsewhere</p>" }));
  await own.goto("http://elsewhere.example/");
  const read = await own.evaluate(async (url) => {
    const body = JSON.stringify({ body: "from elsewhere" });
    // A browser sends it, and tells the page nothing of what became of it.
    await fetch(`${url}/api/v1/topics/elsewhere/messages`, { method: "POST", mode: "no-cors", credentials: "include", body }).catch(() => undefined);
    return fetch(`${url}/api/v1/topics`, { credentials: "include" }).then(() => "read", () => "refused");
  }, server);
  expect(read).toBe("refused");
  const there = await page.context().request.get(`${server}/api/v1/topics/elsewhere`);
  expect(there.status()).toBe(404);
  const forged = await page.context().request.post(`${server}/api/v1/topics/elsewhere/messages`, { headers: { Origin: "http://elsewhere.example" }, data: { body: "x" } });
  expect(forged.status()).toBe(403);
});

test("no script gets into a page, by markup or by text", async () => {
  const answer = await page.goto(server);
  const policy = answer?.headers()["content-security-policy"] ?? "";
  expect(policy).toContain("require-trusted-types-for 'script'");
  expect(policy).not.toContain("unsafe-");
  const got = await page.evaluate(() => {
    try {
      document.body.insertAdjacentHTML("beforeend", "<img src=x onerror=alert(1)>");
      return "inserted";
    } catch (e) {
      return e instanceof TypeError ? "refused" : String(e);
    }
  });
  expect(got).toBe("refused");
});
