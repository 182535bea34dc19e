import { Store } from "@/lib/store";
import { lose } from "./connection";
import { Problem } from "./problem";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

type Method = "get" | "post" | "put" | "delete";
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;

/** PathsOf are the paths that can be asked with a method. */
export type PathsOf<M extends Method> = {
  [P in keyof paths]: NonNullable<paths[P][M]> extends { responses: unknown } ? P : never;
}[keyof paths];

type QueryOf<O> = O extends { parameters: { query?: infer T } } ? T : undefined;
type BodyOf<O> = O extends { requestBody?: { content: { "application/json": infer T } } } ? T : undefined;
// One object for each operation: with intersections the compiler would multiply the parts of all of them.
type Parts<O> = O extends { parameters: { path: infer T } }
  ? { path: T; query?: QueryOf<O>; body?: BodyOf<O> }
  : { path?: undefined; query?: QueryOf<O>; body?: BodyOf<O> };

/** Input is what a request takes: the parts of its path, its query and its body. */
export type Input<P extends keyof paths, M extends Method> = Parts<Operation<P, M>>;

/** Answer is what it is answered with. */
export type Answer<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: { 200: { content: { "application/json": infer T } } } } ? T : undefined;

type Loose = { path?: object; query?: object; body?: unknown };

/** loggedOut is set when an answer says that nobody is logged in any more. */
export const loggedOut = new Store(false);

/** address fills in a path and its query. What is undefined or empty is left out. */
export function address(path: string, input: Loose = {}): string {
  const parts = new Map(Object.entries(input.path ?? {}));
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parts.get(name))));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(input.query ?? {})) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  return query.size > 0 ? `${filled}?${query.toString()}` : filled;
}

type Ask = <M extends Method, P extends PathsOf<M>>(method: M, path: P, input: Input<P, M>, signal?: AbortSignal) => Promise<Answer<P, M>>;

/** ask sends a request to the admin API. Every failure is a Problem. */
export const ask = request as unknown as Ask;

async function request(method: Method, path: string, input: Loose, signal?: AbortSignal): Promise<unknown> {
  const init: RequestInit = { method: method.toUpperCase(), signal: signal ?? null };
  if (input.body !== undefined) {
    init.headers = { "Content-Type": "application/json" };
    init.body = JSON.stringify(input.body);
  }
  const answer = await send(address(path, input), init);
  return answer.status === 204 ? undefined : answer.json();
}

async function send(url: string, init: RequestInit): Promise<Response> {
  const answer = await fetch(url, init).catch((cause: unknown) => {
    if (init.signal?.aborted) throw cause;
    lose();
    throw new Problem(0, "gone", String(cause));
  });
  if (answer.ok) return answer;
  const problem = await Problem.of(answer);
  if (problem.gone) lose();
  if (problem.status === 401) loggedOut.set(true);
  throw problem;
}

/** logIn begins a session. */
export async function logIn(name: string, password: string): Promise<void> {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name, password }) };
  const answer = await fetch("/login", init).catch(() => undefined);
  if (!answer) throw new Problem(0, "gone", "");
  if (!answer.ok) throw await Problem.of(answer);
  loggedOut.set(false);
}

/** logOut ends the session, on every server. */
export async function logOut(): Promise<void> {
  await fetch("/logout", { method: "POST" }).catch(lose);
  loggedOut.set(true);
}
