import type { Locator } from "playwright-core";

interface Traced {
  traceEvents: { name: string; pid: number; tid: number; args: { name?: string }; dur?: number; tdur?: number }[];
}

/** Scrolled is what a browser did while a list was scrolled from its beginning to its end. */
export interface Scrolled {
  /** longest is how many milliseconds of a processor its longest task took. What a task waited for one, on a busy machine, is not in it. */
  longest: number;
  /** rows is the most elements of rows that there were. */
  rows: number;
}

/** scrolled scrolls a list as fast as it is drawn, under a trace of the browser. */
export async function scrolled(list: Locator): Promise<Scrolled> {
  const page = list.page();
  const browser = page.context().browser();
  if (!browser) throw new Error("the browser is gone");
  await page.evaluate(rest); // what drew the page is over
  await browser.startTracing(page, { categories: ["toplevel"] });
  const rows = await list.evaluate(async (e) => {
    let most = 0;
    for (let at = 0; at < e.scrollHeight; at += 1500) {
      e.scrollTo(0, at);
      await new Promise(requestAnimationFrame);
      most = Math.max(most, e.querySelectorAll("tr").length);
    }
    return most;
  });
  await page.evaluate(rest);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as Traced;
  const pages = new Set(traceEvents.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`));
  const tasks = traceEvents.filter(({ name, pid, tid }) => name.endsWith("RunTask") && pages.has(`${pid} ${tid}`));
  const longest = Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1000;
  if (tasks.length < 100 || longest === 0) throw new Error("the browser does not tell its tasks");
  console.log(`scrolling: ${tasks.length} tasks; the longest took ${longest.toFixed(1)} ms of a processor, ${(Math.max(...tasks.map(({ dur = 0 }) => dur)) / 1000).toFixed(1)} ms in all; ${rows} row elements`);
  return { longest, rows };
}

/** rest waits until a page has nothing to do; a browser without windows may not tell. */
function rest(): Promise<void> {
  return new Promise((done) => requestIdleCallback(() => done(), { timeout: 500 }));
}
