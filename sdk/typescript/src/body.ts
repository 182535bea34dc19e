/** Bodies: JSON, text or base64 on their way. */

import { Buffer } from "node:buffer";

/** Body is one in JSON, in one of three forms. */
export interface Body {
  json?: unknown;
  body?: string;
  body_base64?: string;
  content_type?: string;
}

/** writeBody is the body of a value: bytes as they are, a string with a content type as text, and everything else as JSON. */
export function writeBody(value: unknown, contentType: string | undefined): Body {
  if (value instanceof Uint8Array) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return { body_base64: bytes.toString("base64"), content_type: contentType ?? "application/octet-stream" };
  }
  if (typeof value === "string" && contentType) return { body: value, content_type: contentType };
  if (JSON.stringify(value) === undefined) throw new TypeError(`${typeof value} has no form in JSON: publish an object, or null`);
  return { json: value, content_type: contentType ?? "application/json" };
}

/** readBody is the body as a value: what JSON says if it is JSON, otherwise bytes. */
export function readBody(body: Body): unknown {
  if ("json" in body) return body.json;
  if (body.body === undefined) return new Uint8Array(Buffer.from(body.body_base64 ?? "", "base64"));
  const base = (body.content_type ?? "").split(";")[0] ?? "";
  if (base === "application/json" || base.endsWith("+json")) {
    try {
      return JSON.parse(body.body);
    } catch {
      // It only says that it is JSON.
    }
  }
  return new TextEncoder().encode(body.body);
}
