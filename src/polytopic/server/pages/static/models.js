// The models page: publish, refresh and roll back.

import { post } from "./api.js";
import { byId } from "./dom.js";
import { _ } from "./i18n.js";

async function change(path, body) {
  const status = byId("status");
  status.textContent = _("Loading …");
  try {
    await post(path, body);
    location.reload();
  } catch (error) {
    status.textContent = _("Something went wrong: {reason}", { reason: error.message });
  }
}

byId("publish")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const rule = form.get("rule") || null;
  change("/v1/models", { model: form.get("model"), rule, note: form.get("note") || null });
});
byId("refresh")?.addEventListener("click", () => change("/v1/models/refresh", {}));
for (const button of document.querySelectorAll("[data-rollback]")) {
  button.addEventListener("click", () => change("/v1/models/rollback", { number: Number(button.dataset.rollback) }));
}
