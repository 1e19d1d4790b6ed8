/** Adds a copy button to code blocks. Browsers allow clipboard writes on secure pages only. */

const SHOWN_MS = 2000;

for (const button of document.querySelectorAll('button[data-copy]')) {
  if (!(button instanceof HTMLButtonElement) || !navigator.clipboard) continue;
  const usual = button.textContent;
  button.hidden = false;
  button.addEventListener('click', async () => {
    const code = document.getElementById(button.dataset.copy ?? '')?.textContent ?? '';
    const done = await navigator.clipboard.writeText(code).then(
      () => 'Copied',
      () => 'Not copied',
    );
    button.textContent = done;
    setTimeout(() => {
      button.textContent = usual;
    }, SHOWN_MS);
  });
}
