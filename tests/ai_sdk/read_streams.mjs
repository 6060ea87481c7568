// Reads streams as JSON lines, each an array of chunks, and prints for each the message the AI SDK's own
// reader makes of it, with the errors it reported on the way.
import { createInterface } from "node:readline";
import { readUIMessageStream } from "ai";

// The reader shows a message only when a chunk changed something visible, so a trailing step boundary
// would stay unseen. A last part makes it show everything, and is taken away again.
const FLUSH = { type: "data-flush", data: null };

async function read(chunks) {
  const errors = [];
  let message = { id: "initial", role: "assistant", parts: [] };
  const snapshots = readUIMessageStream({
    message: structuredClone(message),
    stream: ReadableStream.from([...chunks, FLUSH]),
    onError: (error) => errors.push(error.message),
  });
  for await (const snapshot of snapshots) message = snapshot;
  message.parts.pop();
  return { message, errors };
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await read(JSON.parse(line))));
}
