/** Who follows a signal. */
const followers = new WeakMap<AbortSignal, Set<AbortController>>();

function follow(signal: AbortSignal, control: AbortController): void {
  const known = followers.get(signal);
  if (known) return void known.add(control);
  const all = new Set([control]);
  followers.set(signal, all);
  signal.addEventListener('abort', () => {
    for (const one of all) one.abort(signal.reason);
    all.clear();
  });
}

/**
 * `AbortSignal.any` without Node's own register of joined signals that somebody listens to: that one lives as long as this process, and with it
 * everything that an instance was waiting for when it was killed.
 */
export function joinSignals(signals: readonly AbortSignal[]): AbortSignal {
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted) return AbortSignal.abort(aborted.reason);
  const control = new AbortController();
  for (const signal of signals) follow(signal, control);
  return control.signal;
}
