import { useNavigate } from "@tanstack/react-router";

/**
 * useFilter is the state of a screen that stands in its URL, so that links and the back button work: pass what useSearch of
 * its route returns.
 */
export function useFilter<T extends object>(search: T): [T, (patch: Partial<T>) => void] {
  const navigate = useNavigate();
  const set = (patch: Partial<T>) => void navigate({ to: ".", search: ((old: T) => ({ ...old, ...patch })) as never });
  return [search, set];
}
