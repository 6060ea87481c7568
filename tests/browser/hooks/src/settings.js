// What the test asks for, from the address of the page.
const asked = new URLSearchParams(location.search);

export const agent = asked.get("agent") ?? "talker";
export const name = asked.get("name") ?? "default";
export const prefix = asked.get("prefix") ?? "agents";
export const readonly = asked.has("readonly");
