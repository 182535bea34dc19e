import { expect, test } from "vitest";
import { fill, places } from "./fill";
import { formats, regionOf } from "./format";

test("numbers and words follow the language", () => {
  const text = "{count} {count|message|messages} in {topic}";
  expect(fill(text, { count: 1, topic: "a" }, "en")).toBe("1 message in a");
  expect(fill(text, { count: 12000, topic: "a" }, "en")).toBe("12,000 messages in a");
  expect(fill("{topic} 中有 {count} 条消息", { count: 12000, topic: "a" }, "zh-CN")).toBe("a 中有 12,000 条消息");
});

test("durations have at most two units", () => {
  const f = formats("en");
  expect(f.duration("26h30m12s")).toBe("1d 2h");
  expect(f.duration("2m5s")).toBe("2m 5s");
  expect(f.duration("40ms")).toBe("40ms");
  expect(f.duration("0s")).toBe("0s");
  expect(f.bytes(1536)).toBe("1.5 kB");
});

test("a million is no minute", () => {
  expect(formats("en-GB").compact(1_000_000)).toBe("1M");
  expect(formats("zh-CN").compact(1_000_000)).toBe("100万");
});

// A text that lacks a key does not compile; one that lacks a value is found here.
const catalogues = import.meta.glob<Record<string, Record<string, string>>>("../**/messages.{en,zh}.ts", { eager: true });

test.each(Object.keys(catalogues).filter((name) => name.endsWith(".en.ts")))("%s has the same keys and values in Chinese", (name) => {
  const en = catalogues[name]?.["en"] ?? {};
  const zh = catalogues[name.replace(".en.ts", ".zh.ts")]?.["zh"] ?? {};
  expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
  for (const [key, text] of Object.entries(en)) {
    expect(places(zh[key] ?? ""), key).toEqual(places(text));
    expect(zh[key], key).not.toBe("");
  }
});

test("dates are written as where the browser is", () => {
  expect(regionOf("en", ["de-DE", "en-GB"])).toBe("en-GB");
  expect(regionOf("zh-CN", ["en-GB"])).toBe("zh-CN");
});
