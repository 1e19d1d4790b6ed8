// Sends the form's URL to the market and shows the result. Every part of the answer is shown as text.

const form = document.querySelector('#submit-form');
const result = document.querySelector('#submit-result');

/** @param {string} text @param {'good' | 'bad' | ''} kind */
function say(text, kind) {
  if (!result) return;
  result.className = `outcome ${kind}`;
  result.textContent = text;
}

/** @param {string} url */
async function submit(url) {
  const answer = await fetch('/v1/market', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ url }),
  });
  const body = await answer.json();
  if (!answer.ok) return say(body.detail ?? `It was refused with status ${answer.status}.`, 'bad');
  const { label, priceUsd, host } = body.listing;
  say(`${body.isNew ? 'Listed' : 'Brought up to date'}: ${label} at ${host}, ${priceUsd} USD a call. `, 'good');
  const link = document.createElement('a');
  link.href = '#listed';
  link.textContent = 'Show it in the list';
  result?.append(link);
  await showListed();
}

/** Replaces the list with the one of the page as it is now. */
async function showListed() {
  const answer = await fetch(location.pathname + location.search);
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('#listings');
  if (fresh) document.querySelector('#listings')?.replaceChildren(...fresh.childNodes);
}

if (form instanceof HTMLFormElement) {
  form.hidden = false;
  const button = form.querySelector('button');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const url = new FormData(form).get('url');
    if (button) button.disabled = true;
    say('Calling it …', '');
    await submit(typeof url === 'string' ? url : '').catch(() => say('There was no answer; try again.', 'bad'));
    if (button) button.disabled = false;
  });
}
