import { expect, test } from "vitest";
import { quoted, snippets } from "./snippets";

test("whatever is in a body, it stays one word of a shell", () => {
  expect(quoted("it's $(rm -rf /)")).toBe(`'it'\\''s $(rm -rf /)'`);
  const { cli, curl, go } = snippets({ topic: "orders", body: `{"a":"'"}`, key: "ann", headers: { note: "x", "ferry-rounds": "1" } });
  expect(cli).toBe(`ferry pub 'orders' --key 'ann' --header 'note=x' -- '{"a":"'\\''"}'`);
  expect(curl).toContain(`'{"body":"{\\"a\\":\\"'\\''\\"}","key":"ann","headers":{"note":"x"}}'`);
  expect(go).toContain(`Headers: map[string]string{"note": "x"}, Body: []byte("{\\"a\\":\\"'\\"}")`);
});

test("bytes that are no text stay bytes", () => {
  const { cli, go } = snippets({ topic: "t", body_base64: "AP8=" });
  expect(cli).toBe("printf %s 'AP8=' | base64 -d | ferry pub 't' -");
  expect(go).toContain(`DecodeString("AP8=")`);
});
