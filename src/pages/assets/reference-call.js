// The path with its query, the address and the request of a form's call. Empty fields are left out.
/** @param {HTMLFormElement} form @returns {{ target: string, url: string, init: RequestInit }} */
export function callOf(form) {
  const method = form.dataset.try ?? 'GET';
  let path = form.dataset.path ?? '/';
  const query = new URLSearchParams();
  let body;
  for (const [name, value] of new FormData(form)) {
    const text = String(value);
    if (name === 'body' && method === 'POST') body = text;
    else if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, () => encodeURIComponent(text));
    else if (text !== '') query.append(name, text);
  }
  const target = `${path}${query.size > 0 ? `?${query}` : ''}`;
  const headers = {
    accept: 'application/json, text/event-stream',
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  return { target, url: `${location.origin}${target}`, init: { method, headers, ...(body !== undefined && { body }) } };
}
