// One tool call: what was asked, what came back, how long it took, and what is wanted from the reader.
import { getToolName, type DynamicToolUIPart, type ToolUIPart } from "ai";
import { memo, useState } from "react";
import { ASK_USER } from "../client-tools";
import { same } from "../exchange";
import { Glyph, type IconName } from "../icons";
import { inWords, useElapsed } from "../timing";
import { Question } from "./Question";

export type ToolPart = ToolUIPart | DynamicToolUIPart;

export interface ToolActions {
  /** Yes or no to a call that asks for leave. */
  decide: (approvalId: string, approved: boolean) => void;
  /** A person's answer to a question of the agent. */
  answer: (toolCallId: string, toolName: string, output: unknown) => void;
}

interface Props {
  part: ToolPart;
  actions: ToolActions;
  /** From the server, for calls this page has not watched. */
  tookMs?: number | undefined;
  /** False once nothing in this message can run any more. */
  live: boolean;
}

/** How the server itself asks for more than a budget allows. */
const RAISE_BUDGET = "raise_budget";

interface BudgetQuestion {
  question: string;
  budget: string;
  spent: string;
  needed: string;
  per: string;
}

const STATES: Record<ToolPart["state"], string> = {
  "input-streaming": "preparing",
  "input-available": "running",
  "approval-requested": "needs your approval",
  "approval-responded": "approved",
  "output-available": "done",
  "output-error": "failed",
  "output-denied": "denied",
};

const ICONS: Partial<Record<ToolPart["state"], IconName>> = {
  "output-available": "check",
  "output-error": "alert",
  "output-denied": "close",
};

export const ToolCard = memo(Card, (before, after) => same(before.part, after.part) && sameRest(before, after));

function sameRest(before: Props, after: Props): boolean {
  return before.actions === after.actions && before.tookMs === after.tookMs && before.live === after.live;
}

function Card({ part, actions, tookMs, live }: Props) {
  const name = getToolName(part);
  const question = name === ASK_USER && part.state === "input-available";
  const preliminary = part.state === "output-available" && part.preliminary === true;
  const running = part.state === "input-streaming" || part.state === "input-available" || preliminary;
  const elapsed = useElapsed(`tool:${part.toolCallId}`, running && live && !question);
  const took = running ? longEnough(elapsed) : (tookMs ?? elapsed);
  const budget = name === RAISE_BUDGET ? (part.input as BudgetQuestion | undefined) : undefined;
  const state = question ? "asks you" : preliminary ? "working" : STATES[part.state];
  return (
    <section className="tool" aria-label={`Tool ${name}`} data-tool={name} data-state={part.state} data-live={running && live}>
      <Body part={part} name={name} state={state} took={took} budget={budget} />
      {preliminary && <p className="progress">{brief(part.output)}</p>}
      {part.state === "approval-requested" && (
        <Approval name={name} id={part.approval.id} decide={actions.decide} budget={budget} />
      )}
      {question && (
        <Question input={part.input} onAnswer={(output) => actions.answer(part.toolCallId, name, output)} />
      )}
    </section>
  );
}

/** A clock that starts at once would only flicker. */
function longEnough(elapsed: number | undefined): number | undefined {
  return elapsed !== undefined && elapsed >= 1000 ? elapsed : undefined;
}

interface BodyProps {
  part: ToolPart;
  name: string;
  state: string;
  took: number | undefined;
  budget: BudgetQuestion | undefined;
}

function Body({ part, name, state, took, budget }: BodyProps) {
  const [opened, setOpened] = useState<boolean>();
  const wanted = (part.state === "approval-requested" && !budget) || part.state === "output-error";
  const open = opened ?? wanted;
  return (
    <details open={open} onToggle={(event) => event.currentTarget.open !== open && setOpened(event.currentTarget.open)}>
      <summary>
        <span className="badge">
          <Glyph name={ICONS[part.state] ?? "tool"} size={15} />
        </span>
        <code>{budget ? "budget" : name}</code>
        <span className="arguments">
          {budget ? `per ${budget.per}: ${budget.spent} of ${budget.budget} spent` : brief(part.input)}
        </span>
        <span className="state">{state}</span>
        <span className="took">{took === undefined ? "" : inWords(took)}</span>
        <Glyph name="chevron" size={14} />
      </summary>
      <Value title="Input" value={part.input} />
      {part.state === "output-available" && <Value title="Output" value={part.output} />}
      {part.state === "output-error" && <Value title="Error" value={part.errorText} />}
      {part.state === "output-denied" && <Value title="Denied" value={part.approval.reason ?? "You said no."} />}
    </details>
  );
}

interface ApprovalProps {
  name: string;
  id: string;
  decide: ToolActions["decide"];
  budget: BudgetQuestion | undefined;
}

function Approval({ name, id, decide, budget }: ApprovalProps) {
  return (
    <div className="ask">
      {budget ? (
        <p>
          {budget.question} The next step may need up to {budget.needed}.
        </p>
      ) : (
        <p>
          May I run <code>{name}</code>?
        </p>
      )}
      <div className="buttons">
        <button type="button" className="primary" onClick={() => decide(id, true)}>
          {budget ? "Continue" : "Approve"}
        </button>
        <button type="button" onClick={() => decide(id, false)}>
          {budget ? "Stop here" : "Deny"}
        </button>
      </div>
    </div>
  );
}

function Value({ title, value }: { title: string; value: unknown }) {
  if (value === undefined) return null;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <div className="value">
      <h3>{title}</h3>
      <pre tabIndex={0} aria-label={title}>
        {text}
      </pre>
    </div>
  );
}

function brief(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "object") return String(value);
  const shown = Object.entries(value).map(
    ([key, each]) => `${key}: ${typeof each === "string" ? each : JSON.stringify(each)}`,
  );
  return shown.join(", ").slice(0, 200);
}
