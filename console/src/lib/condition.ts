/** Search is what was typed, as the server is asked for it. */
export interface Search {
  kind: "all" | "text" | "expression";
  where: string;
}

const operator = /==|!=|<=|>=| [<>] |\b(contains|startsWith|endsWith|matches)\b\s+["'`]|\bin\s+\[|^not\s|^(recoverable)$/;

/** Sight is what of a message may be searched for. */
export interface Sight {
  bodies: boolean;
  headers: boolean;
}

/**
 * searchOf tells what was typed: an expression has an operator, everything else is a text that is looked for in what a
 * message says. Who may not see bodies or headers may not ask for them either. Quotes make a text of anything.
 */
export function searchOf(typed: string, { bodies, headers }: Sight): Search {
  if (typed === "") return { kind: "all", where: "" };
  const quoted = /^"(.*)"$/s.exec(typed)?.[1];
  if (quoted === undefined && operator.test(typed)) return { kind: "expression", where: typed };
  const text = literal(quoted ?? typed);
  const parts = [`id == ${text}`, `key contains ${text}`, `error contains ${text}`];
  if (headers) parts.push(`(headers["traceparent"] ?? "") contains ${text}`);
  if (bodies) parts.push(`body contains ${text}`);
  return { kind: "text", where: parts.join(" or ") };
}

/** literal writes a text as the filter language does. */
export function literal(text: string): string {
  return JSON.stringify(text);
}

/** couldBeID reports whether a text may be the id of a message: then it is worth asking for. */
export function couldBeID(typed: string): boolean {
  return /^\S{1,256}$/.test(typed) && !operator.test(typed);
}

/** ofKind adds to a condition that letters have died of like errors. */
export function ofKind(where: string, fingerprint: string | undefined): string {
  if (fingerprint === undefined) return where;
  return both(where, `fingerprint == ${literal(fingerprint)}`);
}

/** both is a condition that holds where two do; the first may be empty. */
export function both(where: string, other: string): string {
  return where === "" ? other : `(${where}) and ${other}`;
}

/** onDay is a condition on letters that died on a day, which the server counts in UTC. */
export function onDay(day: string): string {
  const next = new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
  return `died_at >= date("${day}") and died_at < date("${next}")`;
}
