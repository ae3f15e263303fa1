// Calls to the API.

/** An error response, with the detail that the service gives. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Send JSON and return the JSON response; throw a Problem if it is an error. */
export async function post(path, body, headers = {}) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return parse(response);
}

/** Return a JSON response; throw a Problem if it is an error. */
export async function get(path) {
  return parse(await fetch(path));
}

async function parse(response) {
  const isJson = (response.headers.get("Content-Type") ?? "").includes("json");
  const content = isJson ? await response.json() : {};
  if (!response.ok) throw new Problem(response.status, content.detail ?? response.statusText);
  return content;
}

/** Return a random id. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
