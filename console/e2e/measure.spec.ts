import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { everything, open, server } from "./browser";

// What only a quiet machine can measure: make test-console-all.

let page: Page;

describe.runIf(everything)("measured", () => {
  beforeAll(async () => {
    ({ page } = await open());
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
