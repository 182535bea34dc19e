import { createContext, useContext } from "react";
import { covers } from "@/lib/pattern";
import type { Schemas } from "./client";

export type Scope = Schemas["ScopeOn"]["scope"];

/** Session is who uses the console, and the broker they look at. */
export interface Session {
  identity: Schemas["Identity"];
  broker: Schemas["Broker"];
}

export const SessionContext = createContext<Session | undefined>(undefined);

/** useSession is for what stands within the shell, which has asked for both. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("useSession outside of the shell");
  return session;
}

/** useMay tells whether somebody may do something with a topic, or without one with what belongs to none. */
export function useMay(): (scope: Scope, topic?: string) => boolean {
  const { identity } = useSession();
  return (scope, topic) => identity.scopes?.some((s) => s.scope === scope && covers(s.topics ?? [], topic)) ?? false;
}
