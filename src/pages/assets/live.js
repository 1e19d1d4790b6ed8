/**
 * Keeps the page up to date: asks for the same page again and takes over the parts that are marked live. It stops while nobody looks, when
 * it is told to, and leaves alone what is being used.
 */

const EVERY_MS = 5000;
/** When the page cannot be had, it is asked for less and less often, up to this. */
const SLOWEST_MS = 60_000;

const control = document.querySelector('#live-switch');
const words = control?.querySelector('span:not(.dot)');
const button = control?.querySelector('button');
const usual = words?.textContent ?? '';

let paused = false;
let waitMs = EVERY_MS;
/** @type {number | undefined} */
let timer;

/** Whether somebody has the focus or a selection in it. @param {Element} element */
function isInUse(element) {
  const selection = getSelection();
  const isSelected = selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
  return isSelected || element.contains(document.activeElement);
}

async function refresh() {
  const answer = await fetch(location.pathname + location.search, { headers: { accept: 'text/html' } });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  for (const element of document.querySelectorAll('[data-live]')) {
    const next = fresh.getElementById(element.id);
    if (next === null || next.innerHTML === element.innerHTML || isInUse(element)) continue;
    element.replaceChildren(...next.childNodes);
  }
  document.dispatchEvent(new Event('fresh'));
}

async function turn() {
  clearTimeout(timer);
  if (paused || document.hidden) return;
  try {
    await refresh();
    waitMs = EVERY_MS;
    say(usual);
  } catch {
    waitMs = Math.min(waitMs * 2, SLOWEST_MS);
    say('Not reachable; trying again');
  }
  schedule();
}

function schedule() {
  clearTimeout(timer);
  if (!paused && !document.hidden) timer = setTimeout(turn, waitMs);
}

/** @param {string} text */
function say(text) {
  if (words && words.textContent !== text) words.textContent = text;
}

button?.addEventListener('click', () => {
  paused = !paused;
  button.textContent = paused ? 'Resume' : 'Pause';
  control?.classList.toggle('paused', paused);
  say(paused ? 'Paused' : usual);
  void turn();
});
document.addEventListener('visibilitychange', () => void turn());
if (control instanceof HTMLElement) control.hidden = false;
schedule();
