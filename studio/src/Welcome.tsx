// An empty conversation: things to try, each of which shows something.
interface Try {
  title: string;
  text: string;
}

const TRIES: readonly Try[] = [
  { title: "A tour", text: "What can you do?" },
  { title: "Tools side by side", text: "Compare the weather in Paris and Tokyo" },
  { title: "Progress", text: "Build the report" },
  { title: "Your approval", text: "Delete the report" },
  { title: "A tool in this page", text: "Switch to the dark theme" },
  { title: "A long answer", text: "Count to 300" },
];

interface Props {
  agent: string;
  onTry: (text: string) => void;
}

export function Welcome({ agent, onTry }: Props) {
  return (
    <div className="welcome">
      <div className="mark" aria-hidden="true" />
      <h2>Say something to begin.</h2>
      <p>
        You are talking to <strong>{agent}</strong>. Or try one of these:
      </p>
      <ul>
        {TRIES.map(({ title, text }) => (
          <li key={text}>
            <button type="button" onClick={() => onTry(text)}>
              <span>{title}</span>
              {text}
            </button>
          </li>
        ))}
      </ul>
      <p className="hint">
        Brave? Ask for the long answer, kill the server in the middle with <code>kill -9</code>, start it again, and
        watch the answer go on where it stopped.
      </p>
    </div>
  );
}
