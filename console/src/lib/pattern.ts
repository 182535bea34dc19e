/** covers reports whether a topic fits one of the patterns, in which * stands for any text. No pattern is every topic. */
export function covers(patterns: readonly string[], topic: string | undefined): boolean {
  if (patterns.length === 0 || patterns.includes("*")) return true;
  return topic !== undefined && patterns.some((p) => expression(p).test(topic));
}

function expression(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}
