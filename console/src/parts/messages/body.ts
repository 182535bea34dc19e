/** parsed is a body as JSON, or undefined where it is none. */
export function parsed(body: string | undefined): unknown {
  try {
    return JSON.parse(body ?? "") as unknown;
  } catch {
    return undefined;
  }
}
