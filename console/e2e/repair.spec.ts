import type { BrowserContextOptions } from "playwright-core";
import { expect, test } from "vitest";
import { en } from "../src/screens/message/messages.en";
import { zh } from "../src/screens/message/messages.zh";
import { accessible, open, server, setting, shoot } from "./browser";

// What a newcomer comes for: find a failed message, see why, mend it and replay it. On another broker, in another language and look.

const [redis = ""] = setting("FERRY_CONSOLE_OUTAGE").split(" ");

test.each([
  ["redis-light", redis, {}, en, "broken-3"],
  ["zh-dark", server, { locale: "zh-CN", colorScheme: "dark" }, zh, "broken-3"],
] as [string, string, BrowserContextOptions, typeof zh, string][])("a failed message is found, understood, mended and replayed: %s", async (name, at, options, text, id) => {
  const { page, faults } = await open("/", { ...options, at });
  await page.getByRole("navigation").getByRole("link", { name: /^(Dead letters|死信)$/ }).click();
  await page.getByRole("button", { name: /^no such user/ }).click();
  await page.getByRole("link", { name: id }).click();
  await page.getByRole("heading", { name: id }).waitFor();
  await page.getByRole("list").getByText("no such user").first().waitFor();
  await accessible(page, name);
  await shoot(page, `repair-${name}`);
  await page.getByRole("button", { name: text.edit }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(text.body).fill('{\n  "id": 3,\n  "user": "ann"\n}');
  await dialog.getByRole("region", { name: text.difference }).getByText('"user": "nobody"').waitFor();
  await shoot(page, `repair-edit-${name}`);
  await dialog.getByRole("button", { name: text.replay }).click();
  await page.getByText(text.replayed).waitFor();
  await page.getByText(text.ready).waitFor();
  expect(faults).toEqual([]);
});

test("what a broker or a server cannot do is not offered", async () => {
  const { page } = await open("/groups", { at: redis });
  await page.getByRole("button", { name: "Pause", exact: true }).first().waitFor();
  expect(await page.getByRole("button", { name: "Reset" }).count()).toBe(0); // Redis forgets what is settled
  expect(await page.getByRole("link", { name: "WeCom" }).count()).toBe(0);
  await page.goto(`${redis}/topics/broken?tab=config`);
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByLabel(/^Most messages/).waitFor();
  expect(await page.getByLabel(/^Settled messages are kept for/).count()).toBe(0);
});
