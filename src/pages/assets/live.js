// Requests the page again and replaces the elements that have `data-live`. It pauses while the page is hidden or the
// reader has stopped it, and skips an element that the reader is using.

const EVERY_MS = 5000;
/** The longest pause between requests: it grows while they fail. */
const SLOWEST_MS = 60_000;

const control = document.querySelector('#live-switch');
const label = control?.querySelector('span:not(.dot)');
const button = control?.querySelector('button');
const usual = label?.textContent ?? '';

let paused = false;
let waitMs = EVERY_MS;
/** @type {number | undefined} */
let timer;

/** Whether the reader has the focus or a selection in it. @param {Element} element */
function isInUse(element) {
  const selection = getSelection();
  const isSelected = selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
  return isSelected || element.contains(document.activeElement);
}

async function refresh() {
  const answer = await fetch(location.pathname + location.search, { headers: { accept: 'text/html' } });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  // The reader may have stopped it meanwhile.
  if (paused) return;
  for (const element of document.querySelectorAll('[data-live]')) {
    const next = fresh.getElementById(element.id);
    if (next === null || next.innerHTML === element.innerHTML || isInUse(element)) continue;
    element.replaceChildren(...next.childNodes);
  }
  document.dispatchEvent(new Event('fresh'));
  pulse();
}

/** Shows an update: a new element starts its animation. */
function pulse() {
  const dot = control?.querySelector('.dot');
  dot?.replaceWith(dot.cloneNode());
}

async function update() {
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
  if (!paused && !document.hidden) timer = setTimeout(update, waitMs);
}

/** While paused it says only that: an earlier request may end meanwhile. @param {string} text */
function say(text) {
  const said = paused ? 'Paused' : text;
  if (label && label.textContent !== said) label.textContent = said;
}

button?.addEventListener('click', () => {
  paused = !paused;
  button.textContent = paused ? 'Resume' : 'Pause';
  control?.classList.toggle('paused', paused);
  say(usual);
  void update();
});
document.addEventListener('visibilitychange', () => void update());
if (control instanceof HTMLElement) control.hidden = false;
schedule();
