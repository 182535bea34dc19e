/** Change is a line of a comparison: in both texts, only in the old one or only in the new one. */
export interface Change {
  kind: "same" | "old" | "new";
  line: string;
}

const most = 2000; // lines, of both together, that are compared one by one

/** diff compares two texts line by line. Texts that are too long for that are shown one after the other. */
export function diff(before: string, after: string): Change[] {
  const a = before.split("\n");
  const b = after.split("\n");
  if (a.length + b.length > most) return [...mark("old", a), ...mark("new", b)];
  const common = table(a, b);
  const changes: Change[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      changes.push({ kind: "same", line: a[i] ?? "" });
      i++;
      j++;
    } else if (at(common, i + 1, j) >= at(common, i, j + 1)) changes.push({ kind: "old", line: a[i++] ?? "" });
    else changes.push({ kind: "new", line: b[j++] ?? "" });
  }
  return [...changes, ...mark("old", a.slice(i)), ...mark("new", b.slice(j))];
}

function mark(kind: Change["kind"], lines: string[]): Change[] {
  return lines.map((line) => ({ kind, line }));
}

function at(common: number[][], i: number, j: number): number {
  return common[i]?.[j] ?? 0;
}

/** table has, for each pair of places, how many lines the rests of both texts have in common. */
function table(a: string[], b: string[]): number[][] {
  const common = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) {
    const row = common[i] ?? [];
    for (let j = b.length - 1; j >= 0; j--) {
      row[j] = a[i] === b[j] ? at(common, i + 1, j + 1) + 1 : Math.max(at(common, i + 1, j), at(common, i, j + 1));
    }
  }
  return common;
}
