import { Store } from "@/lib/store";

/** Lost says since when nothing answers, and when it is tried again (milliseconds since 1970). */
export interface Lost {
  since: number;
  next: number;
}

/** connection is undefined while requests are answered. */
export const connection = new Store<Lost | undefined>(undefined);

const first = 2000;
const longest = 15000;

let wait = first;
let timer: ReturnType<typeof setTimeout> | undefined;

/** lose notes that nothing answers. From then on one probe asks for all, less and less often. */
export function lose(): void {
  if (connection.get()) return;
  wait = first;
  plan(Date.now());
}

function plan(since: number): void {
  connection.set({ since, next: Date.now() + wait });
  timer = setTimeout(() => void tryNow(), wait);
  wait = Math.min(wait * 2, longest);
}

/** tryNow probes without waiting for the next time. A hidden page does not ask. */
export async function tryNow(): Promise<void> {
  clearTimeout(timer);
  const lost = connection.get();
  if (!lost) return;
  const ready = !document.hidden && (await fetch("/readyz").then((a) => a.ok, () => false));
  if (ready) connection.set(undefined);
  else plan(lost.since);
}

const patience = 5000;

/** check asks whether the server is there, after a stream has broken off or fallen silent. */
export async function check(): Promise<void> {
  if (connection.get() || document.hidden) return;
  const ready = await fetch("/readyz", { signal: AbortSignal.timeout(patience) }).then((a) => a.ok, () => false);
  if (!ready) lose();
}
