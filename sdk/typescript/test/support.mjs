/** A server of one's own, a way to it that can be cut, and waiting for what must happen. */

import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const quiet = { warn() {}, error() {} };

/** topic is one that no other test has. */
export function topic() {
  return `ts-${randomUUID().slice(0, 12)}`;
}

export function directory() {
  return mkdtempSync(join(tmpdir(), "ferry-sdk-"));
}

/** eventually waits until something is so. */
export async function eventually(condition, what) {
  const end = performance.now() + 60_000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`it did not happen within 60 s: ${what}`);
    await sleep(10);
  }
}

/** Server is a `ferry serve` in front of a disk broker, which can be killed and started again at the same address. */
export class Server {
  #directory = directory();
  #broker = `disk://${join(this.#directory, "broker")}`;
  #listen = "127.0.0.1:0";

  static async start() {
    const server = new Server();
    const scopes = "publish,consume,view,operate,payload";
    const made = spawnSync(process.env.FERRY_BIN, ["token", "create", "sdk", "--broker", server.#broker, "--scope", scopes]);
    server.token = made.stdout.toString().trim();
    await server.start();
    return server;
  }

  async start() {
    this.process = spawn(process.env.FERRY_BIN, ["serve", "--broker", this.#broker, "--listen", this.#listen], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    for await (const line of createInterface(this.process.stdout)) {
      const found = /running\s+http:\/\/(\S+)/.exec(line);
      if (!found) continue;
      this.#listen = found[1];
      this.url = `http://${found[1]}`;
      this.process.stdout.resume();
      return;
    }
    throw new Error("the server did not start");
  }

  async kill(signal = "SIGKILL") {
    this.process.kill(signal);
    await once(this.process, "exit");
  }

  async close() {
    await this.kill("SIGTERM");
    rmSync(this.#directory, { recursive: true });
  }
}

/** Way is a way to a server. It can lose answers, and it can be cut, so that nothing arrives and nobody is told. */
export class Way {
  #sockets = new Set();
  #isCut = false;
  losing = 0;

  static async to(url) {
    const way = new Way();
    const [host, port] = url.replace(/^\w+:\/\//, "").split(":");
    way.listener = createServer((near) => way.#join(near, connect(Number(port), host)));
    way.listener.listen(0, "127.0.0.1");
    await once(way.listener, "listening");
    way.url = `http://127.0.0.1:${way.listener.address().port}`;
    return way;
  }

  #join(near, far) {
    for (const [source, sink] of [
      [near, far],
      [far, near],
    ]) {
      this.#sockets.add(source);
      source.on("data", (data) => {
        if (this.#isCut) return;
        if (source === far && this.losing > 0) {
          this.losing--;
          near.destroy();
          far.destroy();
          return;
        }
        sink.write(data);
      });
      source.on("error", () => {});
      source.on("close", () => {
        this.#sockets.delete(source);
        if (!this.#isCut) sink.destroy();
      });
    }
  }

  /** cut lets nothing through. */
  cut() {
    this.#isCut = true;
  }

  /** mend breaks what hangs, and lets new connections through. */
  mend() {
    this.#isCut = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  close() {
    this.listener.close();
    this.mend();
  }
}

/** spawnWorker starts a worker in a process of its own, which writes what it handles into a file: key, number, start or end. */
export function spawnWorker(name, log, pause, hang = -1) {
  const script = fileURLToPath(new URL("worker_process.mjs", import.meta.url));
  return spawn(process.execPath, [script, name, log, String(pause), String(hang)], { stdio: "inherit" });
}

/** readLog is what workers wrote. The last line of a killed one may be cut off. */
export function readLog(path) {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => line.split(" ")).map(([key, n, what]) => ({ key, n: Number(n), what }));
}

/** handled are those that were handled to the end. */
export function handled(path) {
  return readLog(path).filter(({ what }) => what === "end");
}

/** distinct counts them, repeats not. */
export function distinct(done) {
  return new Set(done.map(({ key, n }) => `${key} ${n}`)).size;
}

/** outOfOrder is the first message that overtook one of its key. Repeats are no overtaking. */
export function outOfOrder(done) {
  const highest = new Map();
  for (const { key, n } of done) {
    const before = highest.get(key) ?? -1;
    if (n > before + 1) return `${key}: ${n} after ${before}`;
    highest.set(key, Math.max(n, before));
  }
  return undefined;
}
