/** Gives code its button where a clipboard can be written, which browsers allow on secure pages alone. */

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
