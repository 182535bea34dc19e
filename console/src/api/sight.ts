import type { Sight } from "@/lib/condition";
import { covers } from "@/lib/pattern";
import { useApi } from "./query";
import { useMay } from "./session";

/**
 * useSight tells what of the messages of a topic, or of all topics, may be searched for: bodies take the scope payload, and what the server masks
 * it lets nobody ask for. It is undefined until the masks are known.
 */
export function useSight(): ((topic?: string) => Sight) | undefined {
  const may = useMay();
  const asked = may("view"); // who sees only some topics is not told what is masked
  const { data, problem } = useApi("/api/v1/masks", {}, { enabled: asked });
  if (asked && !data && !problem) return undefined;
  return (topic) => {
    const masks = (data?.masks ?? []).filter((m) => topic === undefined || covers(m.topics ?? [], topic));
    return {
      bodies: may("payload", topic) && !masks.some((m) => m.fields?.length),
      headers: !masks.some((m) => m.headers?.length),
    };
  };
}
