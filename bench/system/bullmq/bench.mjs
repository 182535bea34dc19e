// Measures BullMQ: one scenario, asked for as JSON in the first argument, answered as JSON on standard output.
// Bodies are random, numbered and compared when they come back, as those of the Go side are.
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const ask = JSON.parse(process.argv[2]);
const connection = { host: '127.0.0.1', port: ask.port, maxRetriesPerRequest: null };
const queue = new Queue('bench', { connection, defaultJobOptions: { removeOnComplete: true, removeOnFail: true } });
const redis = new Redis(connection); // only to ask what the server used

// ---- bodies and ledger

const bodySize = 1024, places = 65536;
const arena = makeArena(places + bodySize);
const handled = new Map(); // seq → how often
let published = 0, count = 0, corrupt = 0;

function makeArena(size) {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-';
  let state = (ask.seed * 2654435761 + 1) >>> 0, text = '';
  for (let i = 0; i < size; i++) {
    state ^= state << 13; state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5; state >>>= 0;
    text += letters[state & 63];
  }
  return text;
}

function body(seq) {
  const at = (Math.imul(seq, 0x9e3779b1) >>> 16) % places;
  return arena.slice(at, at + bodySize);
}

function next() {
  const seq = published++;
  return { seq, body: body(seq) };
}

function note(data) {
  if (data.body !== body(data.seq)) corrupt++;
  handled.set(data.seq, (handled.get(data.seq) ?? 0) + 1);
  count++;
}

function verdict() {
  let lost = 0, repeated = 0, foreign = 0;
  for (let seq = 0; seq < published; seq++) {
    const times = handled.get(seq) ?? 0;
    if (times === 0) lost++; else repeated += times - 1;
  }
  for (const seq of handled.keys()) if (seq >= published) foreign++;
  return { published, lost, repeated, corrupt: corrupt + foreign };
}

// ---- measuring

async function info() {
  const text = await redis.info('everything');
  const field = (name) => Number(text.match(new RegExp(`^${name}:([\\d.]+)`, 'm'))?.[1] ?? 0);
  return { cpu: (field('used_cpu_user') + field('used_cpu_sys')) * 1e6, commands: field('total_commands_processed'), bytes: field('used_memory') };
}

async function start() {
  const server = await info();
  return { server, cpu: process.cpuUsage(), began: performance.now() };
}

async function stop(span, messages) {
  const elapsed = performance.now() - span.began, used = process.cpuUsage(span.cpu), server = await info();
  return { messages, elapsed_ms: elapsed, cpu_us: used.user + used.system, server_cpu_us: server.cpu - span.server.cpu, server, values: {} };
}

function rated(result) {
  result.values.rate = result.messages / result.elapsed_ms * 1000;
  result.values.server = result.server_cpu_us / Math.max(result.messages, 1);
  return result;
}

function quantile(sorted, q) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q / 100))];
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// ---- publishing and consuming

const single = async () => { await queue.add('job', next()); };

async function batch() {
  const jobs = [];
  for (let i = 0; i < 100; i++) jobs.push({ name: 'job', data: next() });
  await queue.addBulk(jobs);
}

// publishFor lets callers publish at once for a while, and returns how many messages that were.
async function publishFor(ms, callers, publish, most) {
  const before = published, until = performance.now() + ms;
  const caller = async () => {
    do await publish(); while (performance.now() < until && published < most);
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return published - before;
}

function consume(handle = () => {}) {
  return new Worker('bench', async (job) => { handle(job.data); note(job.data); }, { connection, concurrency: ask.concurrency });
}

// drained waits until all came back and BullMQ itself counts no job any more.
async function drained() {
  while (count < published) await sleep(1);
  for (;;) {
    const counts = await queue.getJobCounts();
    if (Object.values(counts).every((n) => n === 0)) return;
    await sleep(1);
  }
}

// ---- scenarios

let worker;

async function publishing(callers, publish) {
  await publishFor(ask.run_ms / 4, callers, publish, Infinity);
  const span = await start();
  const n = await publishFor(ask.run_ms, callers, publish, Infinity);
  const result = rated(await stop(span, n));
  worker = consume();
  await drained();
  return result;
}

async function draining() {
  const n = await publishFor(ask.fill_ms, 1, batch, ask.backlog);
  const span = await start();
  worker = consume();
  await drained();
  return rated(await stop(span, n));
}

async function picking() {
  const took = [], warm = 20, until = performance.now() + ask.pickup_ms;
  let ran;
  worker = consume(() => ran(performance.now()));
  await worker.waitUntilReady();
  const span = await start();
  for (let i = 0; i < warm + ask.pickups && (i < 2 * warm || performance.now() < until); i++) {
    await sleep(1 + Math.random() * 2);
    const picked = new Promise((resolve) => { ran = resolve; });
    const from = performance.now();
    await queue.add('job', next());
    const at = await picked;
    if (i >= warm) took.push(at - from);
  }
  await drained();
  const result = await stop(span, published);
  took.sort((a, b) => a - b);
  result.values = { p50: quantile(took, 50), p99: quantile(took, 99) };
  return result;
}

async function delaying() {
  const late = [];
  worker = consume((data) => late.push(performance.now() - data.due));
  await worker.waitUntilReady();
  const span = await start();
  for (let i = 0; i < ask.delays; i++) {
    const delay = Math.round(1 + Math.random() * ask.delay_span_ms);
    await queue.add('job', { ...next(), due: performance.now() + delay }, { delay });
  }
  await drained();
  const result = await stop(span, published);
  late.sort((a, b) => a - b);
  result.values = { earliest: late[0], p50: quantile(late, 50), p99: quantile(late, 99), latest: late.at(-1), early: late.filter((d) => d < 0).length };
  return result;
}

async function storing() {
  const before = await info();
  const span = await start();
  const n = await publishFor(ask.fill_ms, 1, batch, ask.heap);
  const result = await stop(span, n);
  result.values = { beyond: (result.server.bytes - before.bytes) / n - bodySize };
  worker = consume();
  await drained();
  return result;
}

async function idling() {
  worker = consume();
  await single();
  await drained();
  const span = await start();
  await sleep(ask.idle_ms);
  const result = await stop(span, 0), seconds = result.elapsed_ms / 1000;
  result.values = {
    cpu: (result.cpu_us + result.server_cpu_us) / 1000 / seconds,
    commands: (result.server.commands - span.server.commands - 1) / seconds,
  };
  return result;
}

const scenarios = {
  'publish-1': () => publishing(1, single),
  'publish-50': () => publishing(50, single),
  'publish-200': () => publishing(200, single),
  'publish-batch': () => publishing(1, batch),
  drain: draining, pickup: picking, delay: delaying, stored: storing, idle: idling,
};

const result = await scenarios[ask.scenario]();
const { server, ...answer } = result;
await worker.close();
await queue.close();
await redis.quit();
process.stdout.write(JSON.stringify({ ...answer, verdict: verdict() }) + '\n');
process.exit(0);
