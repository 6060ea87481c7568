// Tools this page brings along. `get_place` answers by itself, `ask_person` by a button.
const anything = { type: "object", properties: {} };

export const tools = {
  get_place: { description: "Where the page is.", parameters: anything, execute: () => "Oslo" },
  ask_person: { description: "Ask the person.", parameters: anything, execute: () => "blue" },
};

export const clientTools = Object.entries(tools).map(([name, { description, parameters }]) => ({
  name,
  description,
  parameters,
}));
