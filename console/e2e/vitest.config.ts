import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Order runs the files by name, but first the one that takes the pictures: the others replay and remove what is on them. */
class Order extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => (moduleId.endsWith("walk.spec.ts") ? "" : moduleId);
    return Promise.resolve([...files].sort((a, b) => rank(a).localeCompare(rank(b))));
  }
}

// One file after the other in one process: they share a server, a browser and who is logged in. What is waited for has 60 s each, or as
// FERRY_CONSOLE_PATIENCE says; a test has many of them.
const patience = Number(process.env["FERRY_CONSOLE_PATIENCE"] ?? 60_000);

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["*.spec.ts"],
    setupFiles: ["tidy.ts"],
    isolate: false,
    fileParallelism: false,
    sequence: { sequencer: Order },
    reporters: ["verbose"],
    testTimeout: 10 * patience,
    hookTimeout: 10 * patience,
  },
});
