import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// FERRY is where `npm run dev` finds a server: ferry dev, for example.
const ferry = process.env["FERRY"] ?? "http://127.0.0.1:7070";

export default defineConfig({
  plugins: [react(), tailwind()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    target: "es2022",
    cssTarget: "esnext",
    // A font or picture inside a style sheet would need data: in the policy.
    assetsInlineLimit: 0,
    // The polyfill is for browsers older than those that run the rest.
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "^/(api|login|logout|readyz|docs|openapi.json)": ferry } },
  test: { include: ["src/**/*.test.ts"] },
});
