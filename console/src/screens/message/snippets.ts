import type { Schemas } from "@/api/client";

type Message = Schemas["Message"];

/** snippets are ways to publish the same message again. What may not be seen is not in them. */
export function snippets(m: Message): { cli: string; curl: string; go: string } {
  const headers = Object.entries(m.headers ?? {}).filter(([name]) => !name.startsWith("ferry"));
  return { cli: cli(m, headers), curl: curl(m, headers), go: goCode(m, headers) };
}

/** quoted is a word of a shell, whatever is in it. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function cli(m: Message, headers: [string, string][]): string {
  const flags = [
    ...(m.key ? [`--key ${quoted(m.key)}`] : []),
    ...(m.content_type ? [`--content-type ${quoted(m.content_type)}`] : []),
    ...headers.map(([name, value]) => `--header ${quoted(`${name}=${value}`)}`),
  ].join(" ");
  const rest = flags && ` ${flags}`;
  if (m.body_base64 !== undefined) return `printf %s ${quoted(m.body_base64)} | base64 -d | ferry pub ${quoted(m.topic)} -${rest}`;
  return `ferry pub ${quoted(m.topic)}${rest} -- ${quoted(m.body ?? "")}`;
}

function curl(m: Message, headers: [string, string][]): string {
  const body = {
    ...(m.body_base64 !== undefined ? { body_base64: m.body_base64 } : { body: m.body ?? "" }),
    ...(m.key && { key: m.key }),
    ...(m.content_type && { content_type: m.content_type }),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
  };
  const url = `"$FERRY/api/v1/topics/"${quoted(encodeURIComponent(m.topic))}/messages`;
  return `curl -sS -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" -d ${quoted(JSON.stringify(body))} ${url}`;
}

function goCode(m: Message, headers: [string, string][]): string {
  const text = (s: string) => JSON.stringify(s); // Go reads everything that JSON writes
  const fields = [
    `Topic: ${text(m.topic)}`,
    ...(m.key ? [`Key: ${text(m.key)}`] : []),
    ...(m.content_type ? [`ContentType: ${text(m.content_type)}`] : []),
    ...(headers.length > 0 ? [`Headers: map[string]string{${headers.map(([name, value]) => `${text(name)}: ${text(value)}`).join(", ")}}`] : []),
    m.body_base64 !== undefined ? `Body: body` : `Body: []byte(${text(m.body ?? "")})`,
  ];
  const decoded = m.body_base64 === undefined ? "" : `body, err := base64.StdEncoding.DecodeString(${text(m.body_base64)})\n`;
  return `${decoded}receipt, err := broker.Publish(ctx, &ferry.Message{${fields.join(", ")}})`;
}
