import type { Schemas } from "@/api/client";

type Tally = Schemas["Tally"];
type Bucket = Schemas["Bucket"];

/** identity is what the letters of a bucket have in common. */
export function identity(b: Bucket): string {
  return JSON.stringify([b.topic, b.group, b.reason, b.fingerprint, b.key, b.day]);
}

/** added adds answers up: buckets of one kind are one, the largest first. */
export function added(pages: Tally[]) {
  const kinds = new Map<string, Bucket>();
  for (const bucket of pages.flatMap((p) => p.buckets ?? [])) {
    const known = kinds.get(identity(bucket));
    kinds.set(identity(bucket), known ? merged(known, bucket) : bucket);
  }
  const sum = (of: (p: Tally) => number | undefined) => pages.reduce((total, p) => total + (of(p) ?? 0), 0);
  return {
    buckets: [...kinds.values()].sort((a, b) => b.count - a.count),
    matched: sum((p) => p.matched),
    others: sum((p) => p.others),
    faulty: sum((p) => p.faulty),
    scanned: pages.at(-1)?.scanned ?? 0,
    total: Math.max(...pages.map((p) => Math.max(p.total ?? 0, p.scanned ?? 0))),
  };
}

function merged(a: Bucket, b: Bucket): Bucket {
  const dates = (one: string | undefined, other: string | undefined) => [one, other].filter((d) => d !== undefined).sort();
  const first = dates(a.first_died, b.first_died)[0];
  const last = dates(a.last_died, b.last_died).at(-1);
  return { ...a, count: a.count + b.count, bytes: a.bytes + b.bytes, ...(first && { first_died: first }), ...(last && { last_died: last }) };
}
