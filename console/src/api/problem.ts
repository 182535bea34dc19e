import type { components } from "./schema";

type Body = components["schemas"]["Problem"];
type Field = components["schemas"]["Field"];

/** Problem is an answer that is an error, or that there was no answer: status 0. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly hint = "",
    readonly requestID = "",
    readonly retryAfter = 0,
    readonly fields: readonly Field[] = [],
  ) {
    super(detail);
  }

  /** gone: neither the server nor what is behind it can be asked at the moment. */
  get gone(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503;
  }

  static async of(answer: Response): Promise<Problem> {
    const body = (await answer.json().catch(() => ({}))) as Partial<Body>;
    return new Problem(
      answer.status,
      body.code ?? "unknown",
      body.detail ?? answer.statusText,
      body.hint,
      body.request_id ?? answer.headers.get("X-Request-Id") ?? "",
      Number(answer.headers.get("Retry-After") ?? 0),
      body.fields ?? [],
    );
  }
}
