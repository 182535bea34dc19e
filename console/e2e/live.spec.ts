import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { api, open, server, setting, shoot } from "./browser";

// What happens while somebody looks: streams tell it, nothing is asked for without a reason, and nothing moves under a pointer.

let page: Page;

beforeAll(async () => {
  ({ page } = await open());
});

const publish = (topic: string, body: string) => api(page, "post", `/topics/${topic}/messages`, { body });

/** asked notes what the page asks for from now on. */
function asked(): string[] {
  const urls: string[] = [];
  page.on("request", (r) => urls.push(r.url()));
  return urls;
}

test("nothing is asked for while nothing happens", async () => {
  const network = await page.context().newCDPSession(page);
  await network.send("Network.enable");
  let events = 0;
  network.on("Network.eventSourceMessageReceived", () => events++);
  await page.goto(`${server}/topics/mails.eu?tab=config`);
  await page.getByRole("tab").first().waitFor();
  const urls = asked();
  // What is there is asked for once more when the stream has begun; then nine looks of the server in a row change nothing.
  await expect
    .poll(() => {
      if (urls.length > 0) [events, urls.length] = [0, 0];
      return events;
    }, { timeout: 60_000 })
    .toBeGreaterThan(8);
  await network.detach();
});

test("what others do is shown by itself, but not while updates are paused", async () => {
  await publish("live", "one");
  await page.goto(`${server}/topics/live?tab=messages`);
  await page.getByRole("cell", { name: "one", exact: true }).waitFor();
  await publish("live", "two");
  await page.getByRole("cell", { name: "two", exact: true }).waitFor();

  const over = page.waitForEvent("requestfailed", (r) => r.url().includes("/events"));
  await page.keyboard.press(".");
  await page.getByRole("button", { name: "Paused" }).waitFor();
  await over;
  const urls = asked();
  await publish("live", "three");
  expect(urls).toEqual([]);
  expect(await page.getByRole("cell", { name: "three", exact: true }).count()).toBe(0);
  await page.keyboard.press(".");
  await page.getByRole("cell", { name: "three", exact: true }).waitFor();
});

test("a hidden tab asks nothing", async () => {
  await publish("live", "four");
  await page.goto(`${server}/topics/live?tab=messages`);
  await page.getByRole("cell", { name: "four", exact: true }).waitFor();
  const hide = (hidden: boolean) =>
    page.evaluate((is) => {
      Object.defineProperty(document, "hidden", { configurable: true, value: is });
      Object.defineProperty(document, "visibilityState", { configurable: true, value: is ? "hidden" : "visible" });
      document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
    }, hidden);
  const over = page.waitForEvent("requestfailed", (r) => r.url().includes("/events"));
  await hide(true);
  await over;
  const urls = asked();
  await publish("live", "five");
  expect(urls).toEqual([]);
  await hide(false);
  await page.getByRole("cell", { name: "five", exact: true }).waitFor();
});

test("rows stay where they are under a pointer", async () => {
  await page.goto(`${server}/topics/live?tab=messages`);
  const rows = page.getByRole("table").locator("tbody tr");
  await page.getByRole("cell", { name: "five", exact: true }).waitFor();
  const before = await rows.allTextContents();
  await rows.first().hover();
  await page.mouse.move(400, 1);
  await rows.first().hover();
  await publish("live", "six");
  await page.getByText("Held still while you point at it: 1 new, 0 gone").waitFor();
  expect(await rows.allTextContents()).toEqual(before);
  await shoot(page, "held-light");
  await page.mouse.move(400, 1);
  await page.getByRole("cell", { name: "six", exact: true }).waitFor();
});

test.each([
  ["redisstream", setting("FERRY_CONSOLE_STREAMS"), "orders"],
  ["disk", server, "tasks"],
])("messages are seen as they come: %s", async (_, at, topic) => {
  const { page: tail } = await open(`/messages?topic=${topic}`, { at });
  const begun = tail.waitForResponse((r) => r.url().includes("/tail"));
  await tail.getByRole("button", { name: "Live tail" }).click();
  await begun;
  await tail.getByText("Waiting for the next message").waitFor();
  await api(tail, "post", `/topics/${topic}/messages`, { body: "seen" });
  await tail.getByRole("cell", { name: "seen", exact: true }).waitFor();
  expect(new URL(tail.url()).searchParams.get("tail")).toBe("yes");
  await shoot(tail, "tail-light");
});

test("a tail says what it did not show", async () => {
  const body = 'event: skipped\ndata: {"count":3}\n\n';
  await page.route(/\/tail/, (route) => route.fulfill({ contentType: "text/event-stream", body }));
  await page.goto(`${server}/messages?topic=tasks&tail=yes`);
  await page.getByText(/^\d+ messages were not shown/).waitFor(); // more after each time that the stream begins again
  await page.unrouteAll();
});
