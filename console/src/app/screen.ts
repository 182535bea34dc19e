import type { AnyRoute } from "@tanstack/react-router";
import type { LucideIcon } from "lucide-react";
import type { Scope, Session } from "@/api/session";
import type { Language } from "@/i18n/language";

/** Screen is what a folder in screens exports as `screen` from its screen.ts: nothing else has to know of it. */
export interface Screen {
  route: AnyRoute;
  title: Record<Language, string>;
  /** nav puts it into the navigation, in this order. Defaults to no place there. */
  nav?: { order: number; icon: LucideIcon; keys: string; to: string };
  /** scope is what somebody must be allowed to do, on every topic, to be shown it. Defaults to nothing. */
  scope?: Scope;
  /** offered tells whether the broker and the server can do what it shows. Defaults to yes. */
  offered?: (session: Session) => boolean;
}
