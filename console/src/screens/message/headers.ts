/** written are headers as lines that can be edited: name: value. */
export function written(headers: Record<string, string>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

/** read reads such lines. A line without a colon has no value. */
export function read(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of text.split("\n").filter((l) => l.trim() !== "")) {
    const colon = line.indexOf(":");
    const name = (colon < 0 ? line : line.slice(0, colon)).trim();
    headers[name] = colon < 0 ? "" : line.slice(colon + 1).trim();
  }
  return headers;
}

/** changed are the headers that an edit sets; those that it removes are empty. */
export function changed(before: Record<string, string>, after: Record<string, string>): Record<string, string> {
  const edits: Record<string, string> = {};
  for (const [name, value] of Object.entries(after)) if (before[name] !== value) edits[name] = value;
  for (const name of Object.keys(before)) if (!(name in after)) edits[name] = "";
  return edits;
}
