import { defineConfig } from "vitest/config";

// One file after the other: they share a server, and the machine. What is waited for has 30 s each; a test has many of them.
export default defineConfig({
  test: { root: import.meta.dirname, include: ["*.spec.ts"], fileParallelism: false, testTimeout: 300_000, hookTimeout: 300_000 },
});
