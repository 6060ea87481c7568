// An empty conversation: what its agent offers to begin with.
import { suggestionsFor } from "./settings";

interface Props {
  agent: string;
  onTry: (text: string) => void;
}

export function Welcome({ agent, onTry }: Props) {
  const suggestions = suggestionsFor(agent);
  return (
    <div className="welcome">
      <div className="mark" aria-hidden="true" />
      <h2>Say something to begin.</h2>
      <p>
        You are talking to <strong>{agent}</strong>.{suggestions.length > 0 && " Or try one of these:"}
      </p>
      <ul>
        {suggestions.map(([title, text]) => (
          <li key={text}>
            <button type="button" onClick={() => onTry(text)}>
              <span>{title}</span>
              {text}
            </button>
          </li>
        ))}
      </ul>
      <p className="hint">
        Brave? Kill the server in the middle of a long answer with <code>kill -9</code>, start it again, and watch the
        answer go on where it stopped.
      </p>
    </div>
  );
}
