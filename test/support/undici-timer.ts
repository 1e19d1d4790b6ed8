// undici keeps the first timer that it makes, for all time-outs of its process. Made while a suite has fake timers, it would never fire in the suites after
// that one. So it is made first, once in each worker: by a request to a port where nobody listens.

const MARK = Symbol.for('percall.undici-timer');
const flags = globalThis as { [MARK]?: boolean };
if (!flags[MARK]) {
  flags[MARK] = true;
  const { Pool } = await import('undici');
  const pool = new Pool('http://127.0.0.1:1');
  await pool.request({ path: '/', method: 'GET' }).catch(() => {});
  await pool.destroy();
}
