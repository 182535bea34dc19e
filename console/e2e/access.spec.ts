import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { accessible, logIn, open, server, shoot, stranger } from "./browser";

// Who gets how much, and who may log in: rules of limits and keys, users and masks.

let page: Page;

beforeAll(async () => {
  ({ page } = await open());
});

test("a key gets a rule of its own for a time, and loses it for a reason", async () => {
  await page.goto(`${server}/limits`);
  await page.getByRole("button", { name: "Give a key its own rule" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Key").fill("ann");
  await dialog.getByLabel("Limit", { exact: true }).fill("calls");
  await dialog.getByLabel("Messages").fill("5");
  await dialog.getByLabel(/^For how long/).fill("tomorrow");
  await dialog.getByLabel(/^Reason/).fill("a customer with a contract");
  await dialog.getByRole("button", { name: "Set" }).click();
  await dialog.getByRole("alert").waitFor();
  await dialog.getByLabel(/^For how long/).fill("2h");
  await accessible(page, "override");
  await shoot(page, "override-light");
  await dialog.getByRole("button", { name: "Set" }).click();
  await dialog.waitFor({ state: "detached" });
  const row = page.getByRole("row", { name: /ann/ });
  await row.getByText("5 in 1m").waitFor();
  await shoot(page, "limits-keys-light");
  await row.getByRole("button", { name: "End its own rule" }).click();
  await dialog.getByLabel(/^Reason/).fill("the contract ended");
  await dialog.getByRole("button", { name: "End its own rule" }).click();
  await row.waitFor({ state: "detached" });
  await page.getByRole("tab", { name: "Changes" }).click();
  await page.getByRole("cell", { name: "the contract ended" }).waitFor();
});

test("a limit gets another rule in every process, which is changed and cleared", async () => {
  await page.goto(`${server}/limits?tab=rules`);
  await page.getByText("No rule was set").waitFor();
  await accessible(page, "no rules");
  await page.getByRole("button", { name: "Set the rule of a limit" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Limit", { exact: true }).fill("calls");
  await dialog.getByLabel("Messages").fill("100");
  await dialog.getByText("Penalty", { exact: true }).click();
  await dialog.getByLabel(/^After so many/).fill("3");
  await dialog.getByLabel(/^Blocked for/).fill("10m");
  await dialog.getByRole("button", { name: "Set" }).click();
  const row = page.getByRole("row", { name: /calls/ });
  await row.getByText("100 in 1m").waitFor();
  await row.getByText("after 3, blocked for 10m").waitFor();
  await row.getByRole("button", { name: "Change" }).click();
  expect(await dialog.getByLabel(/^After so many/).inputValue()).toBe("3");
  await accessible(page, "rule of a limit");
  await shoot(page, "limit-rule-light");
  await dialog.getByLabel("Messages").fill("200");
  await dialog.getByRole("button", { name: "Set" }).click();
  await row.getByText("200 in 1m").waitFor();
  await row.getByRole("button", { name: "Clear" }).click();
  await dialog.getByRole("button", { name: "Clear" }).click();
  await page.getByText("No rule was set").waitFor();
});

test("a user is added with a password that is told once, logs in, is disabled and removed", async () => {
  await page.goto(`${server}/settings?tab=access`);
  await page.getByRole("cell", { name: "cards.*" }).waitFor();
  await page.getByRole("button", { name: "Add a user" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("carol");
  await dialog.getByLabel("Role").selectOption("operator");
  await dialog.getByLabel(/^Topics/).fill("orders, mails.*");
  await accessible(page, "user form");
  await shoot(page, "user-form-light");
  await dialog.getByRole("button", { name: "Add a user" }).click();
  await dialog.getByText("It is not shown again.").waitFor();
  const password = (await dialog.locator("code").textContent()) ?? "";
  await dialog.getByRole("button", { name: "Close" }).last().click();
  const row = page.getByRole("row", { name: /carol/ });
  await row.getByText("Operator on orders, mails.*").waitFor();
  await accessible(page, "users");
  await shoot(page, "users-light");

  const { page: other } = await stranger();
  await logIn(other, "carol", password);
  await other.goto(`${server}/topics`);
  await other.getByRole("link", { name: "orders" }).waitFor();
  expect(await other.getByRole("link", { name: "waste" }).count()).toBe(0);
  await row.getByRole("button", { name: "Disable" }).click();
  await row.getByText("Disabled").waitFor();
  await other.reload();
  await other.getByLabel("Password").waitFor();

  expect(await page.getByRole("row", { name: /boss/ }).getByRole("button", { name: "Disable" }).count()).toBe(0);
  await row.getByRole("button", { name: "Remove" }).click();
  await dialog.getByRole("textbox").fill("carol");
  await dialog.getByRole("button", { name: "Remove" }).click();
  await row.waitFor({ state: "detached" });
});
