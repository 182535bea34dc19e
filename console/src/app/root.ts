import { createRootRoute } from "@tanstack/react-router";
import { Shell } from "./Shell";
import { Nothing } from "./Nothing";

/** root is the parent of the routes of all screens. */
export const root = createRootRoute({ component: Shell, notFoundComponent: Nothing });
