// A question of the agent to the person: buttons for the choices it offers, a field for anything else.
import { useId, useState } from "react";

interface Props {
  input: unknown;
  onAnswer: (output: unknown) => void;
}

export function Question({ input, onAnswer }: Props) {
  const [text, setText] = useState("");
  const field = useId();
  const { question, options } = read(input);
  return (
    <form
      className="ask"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim()) onAnswer({ answer: text.trim() });
      }}
    >
      <label htmlFor={field}>{question}</label>
      <div className="buttons">
        {options.map((option) => (
          <button type="button" key={option} onClick={() => onAnswer({ answer: option })}>
            {option}
          </button>
        ))}
      </div>
      <div className="buttons">
        <input id={field} value={text} onChange={(event) => setText(event.target.value)} placeholder="Your answer" />
        <button type="submit" className="primary" disabled={!text.trim()}>
          Answer
        </button>
        <button type="button" onClick={() => onAnswer({ answer: null, dismissed: true })}>
          Skip
        </button>
      </div>
    </form>
  );
}

function read(input: unknown): { question: string; options: string[] } {
  const { question, options } = (input ?? {}) as { question?: unknown; options?: unknown };
  return {
    question: typeof question === "string" && question ? question : "The agent asks you something.",
    options: Array.isArray(options) ? options.filter((each): each is string => typeof each === "string") : [],
  };
}
