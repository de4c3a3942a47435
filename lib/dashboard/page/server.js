/** The addresses are relative to this file, whatever prefix the application or a proxy adds. */
const API = new URL('../api/', import.meta.url);

/** Another site cannot send it. */
const OWN = { 'x-redlock-dashboard': 'page' };

export function readState(log, after) {
  return ask('state', { log, after });
}

/** @param target has a slot if it is a permit */
export function inspect(service, { resource, slot }) {
  return ask('inspect', { service: service ?? '', resource, slot: String(slot ?? '') });
}

export function release(service, { resource, slot }, ticket, confirm) {
  const headers = { ...OWN, 'content-type': 'application/json' };
  const body = JSON.stringify({ service: service ?? '', resource, slot: String(slot ?? ''), ticket, confirm });
  return answerOf(fetch(new URL('release', API), { method: 'POST', headers, body }));
}

function ask(name, values) {
  const address = new URL(name, API);
  for (const [key, value] of Object.entries(values)) address.searchParams.set(key, value);
  return answerOf(fetch(address, { headers: { ...OWN, accept: 'application/json' } }));
}

/** @throws with a sentence for the user */
async function answerOf(sent) {
  let response;
  try {
    response = await sent;
  } catch {
    throw new Error('The application does not answer.');
  }
  const body = await response.json().catch(() => undefined);
  if (response.ok && body !== undefined) return body;
  if (response.status === 401 || response.status === 403 || response.ok) {
    throw new Error(`Access was refused${reasonIn(body)}. Sign in and load this page again.`);
  }
  throw new Error(`The application answered with status ${response.status}${reasonIn(body)}.`);
}

function reasonIn(body) {
  return typeof body?.message === 'string' ? `: ${body.message}` : '';
}
