// The service, called as any program calls it.

/** A failure, with the service's own sentence. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Post values; return the answer's, or raise what is wrong. */
export async function post(path, body, headers = {}) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return answerOf(response);
}

/** Get values. */
export async function get(path) {
  return answerOf(await fetch(path));
}

async function answerOf(response) {
  const isJson = (response.headers.get("Content-Type") ?? "").includes("json");
  const answer = isJson ? await response.json() : {};
  if (!response.ok) throw new Problem(response.status, answer.detail ?? response.statusText);
  return answer;
}

/** Return a name that nobody else has. */
export function newName() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
