import { QueryClientProvider } from "@tanstack/react-query";
import { createRouter, RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queries } from "@/api/query";
import { Broken } from "@/app/Broken";
import { listen } from "@/app/keys";
import { root } from "@/app/root";
import { screens } from "@/app/screens";
import { applyTheme } from "@/app/theme";
import { choice, language } from "@/i18n/language";
import "./styles.css";

// Dialogs keep the page behind them from scrolling by a style element, which takes the nonce of the page.
const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.nonce;
if (nonce) setNonce(nonce);

applyTheme();
listen();
const speak = () => (document.documentElement.lang = language());
choice.subscribe(speak);
speak();

const router = createRouter({
  routeTree: root.addChildren(screens().map((s) => s.route)),
  defaultPreload: "intent",
  defaultErrorComponent: Broken,
});

const place = document.getElementById("root");
if (!place) throw new Error("the page has no place for the console");
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
