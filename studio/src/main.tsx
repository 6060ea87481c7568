import "./no-eval";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Page } from "./Page";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/messages.css";
import "./styles/prose.css";

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <Page />
    </StrictMode>,
  );
}
