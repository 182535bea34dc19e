import axe from "axe-core";
import { mkdirSync } from "node:fs";
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { expect } from "vitest";

/** setting is a variable that the Go test sets. */
export function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run this with go test ./console`);
  return value;
}

export const server = setting("FERRY_CONSOLE_URL");

/** launch starts the browser of the distribution once; it ends with the process. */
function launch(): Promise<Browser> {
  return (browser ??= chromium.launch({ executablePath: setting("FERRY_CONSOLE_CHROMIUM"), args: ["--no-sandbox", "--disable-dev-shm-usage"] }));
}

let browser: Promise<Browser> | undefined;

/** opened are the browsers that people have open; tidy.ts closes them. */
export const opened: BrowserContext[] = [];

/** Watched is a page, and what went wrong on it without anybody seeing: errors, breaches of the policy, dialogs. */
export interface Watched {
  page: Page;
  faults: string[];
}

/** watch notes what must not happen on a page: also what the console says to whoever develops it. */
export function watch(page: Page): Watched {
  const faults: string[] = [];
  page.on("pageerror", (e) => faults.push(`error: ${e.message}`));
  page.on("dialog", (d) => {
    faults.push(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  page.on("console", (m) => {
    const refused = m.text().startsWith("Failed to load resource"); // an answer that a test may expect
    if ((m.type() === "error" && !refused) || /Content Security Policy|Trusted ?Type/i.test(m.text())) faults.push(m.text());
  });
  return { page, faults };
}

/** patience is how long something that is waited for may take, in milliseconds. A machine that is busy with something else may be given more. */
export const patience = Number(process.env["FERRY_CONSOLE_PATIENCE"] ?? 60_000);

/** everything: also what takes long, or a quiet machine. */
export const everything = Boolean(process.env["FERRY_CONSOLE_ALL"]);

/** Visitor is who looks at which server, with which browser. */
interface Visitor extends BrowserContextOptions {
  as?: string;
  at?: string;
}

/** open shows a page to somebody who is logged in, in a browser of their own. */
export async function open(path = "/", { as = "boss", at = server, ...options }: Visitor = {}): Promise<Watched> {
  const known = sessions.get(`${as} ${at}`);
  const watched = await stranger({ ...(known && { storageState: known }), ...options });
  if (!known) {
    await logIn(watched.page, as, setting("FERRY_CONSOLE_PASSWORD"), at);
    sessions.set(`${as} ${at}`, await watched.page.context().storageState());
  }
  if (known || path !== "/") await watched.page.goto(at + path);
  await frame(watched.page);
  return watched;
}

/** stranger is a browser of somebody who is not logged in. */
export async function stranger(options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await (await launch()).newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", colorScheme: "light", ...options });
  opened.push(context);
  context.setDefaultTimeout(patience);
  return watch(await context.newPage());
}

/** sessions that were begun, so that not every test logs in. */
const sessions = new Map<string, Awaited<ReturnType<BrowserContext["storageState"]>>>();

/** frame waits for what is around every screen. */
function frame(page: Page): Promise<void> {
  return page.getByRole("navigation", { name: /^(Navigation|导航)$/ }).or(page.getByRole("button", { name: /^(Menu|菜单)$/ })).first().waitFor();
}

/** show goes to an address without loading the page again. */
export async function show(page: Page, to: string): Promise<void> {
  await page.evaluate((address) => {
    history.pushState({}, "", address);
    dispatchEvent(new PopStateEvent("popstate"));
  }, to);
}

/** api asks the admin API as who is logged in, but not from the page. */
export async function api(page: Page, method: "get" | "post" | "put" | "delete", path: string, data?: object): Promise<unknown> {
  const answer = await page.context().request[method](new URL(`/api/v1${path}`, page.url()).href, data ? { data } : {});
  if (!answer.ok()) throw new Error(`${method} ${path}: ${answer.status()} ${await answer.text()}`);
  return answer.status() === 204 ? undefined : answer.json();
}

/** logIn logs in at the page that who has no session sees. */
export async function logIn(page: Page, name: string, password: string, at = server): Promise<void> {
  await page.goto(at);
  await page.getByLabel(/^(Name|用户名)$/).fill(name);
  await page.getByLabel(/^(Password|密码)$/).fill(password);
  await page.getByRole("button", { name: /^(Log in|登录)$/ }).click();
  await frame(page);
}

/** accessible fails with what axe finds on a page. */
export async function accessible(page: Page, name: string): Promise<void> {
  // The policy forbids scripts that are put into a page; the debugger runs it beside.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const { axe: runner } = window as unknown as { axe: typeof axe };
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
    const result = await runner.run(document, { runOnly: tags, resultTypes: ["violations"] }); // the others are not described
    return result.violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} ${n.failureSummary ?? ""}`).join("; ")}`);
  });
  expect(found, `axe on ${name}`).toEqual([]);
}

/** shoot writes a picture of a page. */
export async function shoot(page: Page, name: string): Promise<void> {
  const folder = setting("FERRY_CONSOLE_SHOTS");
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: `${folder}/${name}.png` });
}
