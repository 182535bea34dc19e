import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { everything, open, server } from "./browser";

// What only a quiet machine can measure: make test-console-all.

let page: Page;

describe.runIf(everything)("measured", () => {
  beforeAll(async () => {
    ({ page } = await open());
  });

  test("scrolling ten thousand rows has no task over 50 ms", async () => {
    const messages = Array.from({ length: 10_000 }, (_, i) => ({ topic: "orders", id: `row-${i}`, state: "ready", body: `{"id":${i}}` }));
    await page.route(/\/topics\/orders\/messages\?/, (route) => route.fulfill({ json: { messages, scanned: 10_000, total: 10_000 } }));
    await page.goto(`${server}/messages?topic=orders`);
    await page.getByText("10,000 found").waitFor();
    await page.keyboard.press("."); // only scrolling is measured
    const table = page.getByRole("region", { name: "Messages" });
    const { longest, most } = await table.evaluate(async (e) => {
      let longest = 0;
      let most = 0;
      const observer = new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) longest = Math.max(longest, entry.duration);
      });
      await new Promise((done) => setTimeout(done, 500)); // what drew the page is over
      observer.observe({ type: "longtask" });
      for (let at = 0; at < e.scrollHeight; at += 1500) {
        e.scrollTo(0, at);
        await new Promise(requestAnimationFrame);
        most = Math.max(most, e.querySelectorAll("tr").length);
      }
      await new Promise((done) => setTimeout(done, 200));
      observer.disconnect();
      return { longest, most };
    });
    await page.unrouteAll();
    console.log(`scrolling 10,000 rows: longest task ${longest || "under 50"} ms, ${most} row elements`);
    expect(longest).toBe(0); // a task of less than 50 ms is none of the long ones
    expect(most).toBeLessThanOrEqual(100);
  });

  test("a million messages are browsed and searched", async () => {
    await page.goto(`${server}/messages?topic=million`);
    await page.getByText(/200 found, .* of about 1,000,000 looked at/).waitFor();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText(/400 found/).waitFor();
    await page.getByRole("searchbox").fill("million-999999");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "million-999999" }).waitFor();
  });

  test("a page that nothing happens to takes no processor", async () => {
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const busy = async () => (await session.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration")?.value ?? 0;
    await page.goto(`${server}/topics/mails.eu?tab=config`);
    await page.getByRole("tab").first().waitFor();
    await new Promise((done) => setTimeout(done, 4000));
    const before = await busy();
    await new Promise((done) => setTimeout(done, 10_000));
    const share = ((await busy()) - before) / 10;
    console.log(`idle: ${(share * 100).toFixed(2)} % of a processor`);
    expect(share).toBeLessThan(0.02);
  });
});
