import { defineConfig } from "vitest/config";

// One file after the other: they share a server, and the machine.
export default defineConfig({
  test: { root: import.meta.dirname, include: ["*.spec.ts"], fileParallelism: false, testTimeout: 60_000, hookTimeout: 60_000 },
});
