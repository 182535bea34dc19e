import type { Schemas } from "./client";
import { useStream } from "./live";
import { remember, useApi, type Loaded } from "./query";

type Figures = Schemas["Figures"];

const refresh = 10000; // where the server refuses the stream

/** useFigures are the figures of every topic, as the server tells them. */
export function useFigures(onEvent?: (figures: Figures) => void): Loaded<Figures> {
  const given = useStream<"/api/v1/figures/events", Figures>("/api/v1/figures/events", {}, "figures", (figures) => {
    remember("/api/v1/figures", {}, figures);
    onEvent?.(figures);
  });
  return useApi("/api/v1/figures", {}, { every: given ? 0 : refresh });
}
