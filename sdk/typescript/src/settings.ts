/** Where the server is, and with which token it is asked. */

import { readFileSync } from "node:fs";
import process from "node:process";
import { Invalid } from "./errors.ts";

// Schemes, with that of HTTP and the port of a URL that names none.
const schemes: Record<string, { scheme: string; port: string }> = {
  "http:": { scheme: "http:", port: "" },
  "https:": { scheme: "https:", port: "" },
  "ferry:": { scheme: "http:", port: ":7070" },
  "ferrys:": { scheme: "https:", port: ":7070" },
};

/** findURL is the URL that was given, or that of FERRY_BROKER, as one of HTTP without a slash at its end. */
export function findURL(url: string | undefined): string {
  const text = url ?? process.env["FERRY_BROKER"] ?? "";
  if (!text) throw invalid("no server is given", "name its URL, or set FERRY_BROKER to ferry://host:7070");
  const parts = /^(\w+:)\/\/([^/?#]+)([^?#]*)([?#].*)?$/.exec(text);
  const known = schemes[parts?.[1] ?? ""];
  if (!parts || !known) throw invalid("that is not the URL of a server", "one looks like http://localhost:7070, or ferrys://host");
  const [, , authority = "", path = "", rest] = parts;
  if (authority.includes("@") || rest) {
    throw invalid("the URL of the server has a user, a password or options in it", "a token belongs in FERRY_TOKEN");
  }
  const port = /:\d+$/.test(authority) ? "" : known.port;
  return `${known.scheme}//${authority}${port}${path.replace(/\/+$/, "")}`;
}

/** findToken is the token that was given, or that of a file, or that of FERRY_TOKEN. */
export function findToken(token: string | undefined, tokenFile: string | undefined): string {
  if (token !== undefined && tokenFile !== undefined) throw invalid("a token and a file of a token are given", "use one of them");
  const text = tokenFile === undefined ? (token ?? process.env["FERRY_TOKEN"] ?? "") : readFileSync(tokenFile, "utf8");
  const found = text.trim();
  if (!found) throw invalid("there is no token", "set FERRY_TOKEN, or make one with `ferry token create`");
  if (!/^[\x21-\x7e]+$/.test(found)) {
    throw invalid("the token has characters that no token has", "give it as `ferry token create` printed it");
  }
  return found;
}

function invalid(detail: string, hint: string): Invalid {
  return new Invalid(detail, { code: "invalid", hint });
}
