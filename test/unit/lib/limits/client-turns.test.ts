import { describe, expect, test } from 'vitest';
import { type ClientTurns, createClientTurns, TurnRefused } from '../../../../src/lib/limits/shares.ts';

const forever = new AbortController().signal;
/** Lets everything that can go on do so. */
const settle = () => new Promise((done) => setImmediate(done));

/** Tasks that run until the test ends them, and note their names when they start. */
function stage(turns: ClientTurns) {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  /** Asks for a turn. The promise resolves with the task's name when it ends. */
  const ask = (client: string, name = client, signal = forever, drawsOnReserve?: boolean): Promise<string> => {
    const task = async () => {
      started.push(name);
      await new Promise<void>((done) => ends.set(name, done));
      return name;
    };
    return turns.run(client, signal, task, drawsOnReserve);
  };
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    ends.delete(name);
    await settle();
  };
  /** Ends whatever runs, the oldest first, until nothing does. */
  const endAll = async (): Promise<void> => {
    for (let [oldest] = ends.keys(); oldest !== undefined; [oldest] = ends.keys()) await end(oldest);
  };
  return { started, ask, end, endAll, running: () => [...ends.keys()] };
}

const outcomeOf = (promise: Promise<unknown>) =>
  promise.catch((error: unknown) => (error instanceof TurnRefused ? 'refused' : error));

describe('places that clients share', () => {
  test('are given at once while they are free, and a task settles as it would alone', async () => {
    const turns = createClientTurns({ running: 4, waiting: 4, waitingPerClient: 4 });
    expect(await turns.run('a', forever, async () => 42)).toBe(42);
    const failure = new Error('no');
    await expect(turns.run('a', forever, () => Promise.reject(failure))).rejects.toBe(failure);
    const { ask, running, endAll } = stage(turns);
    const all = ['a', 'b', 'c', 'd'].map((client) => ask(client));
    expect(running()).toEqual(['a', 'b', 'c', 'd']);
    await endAll();
    expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd']);
  });

  test('are never exceeded', async () => {
    const { ask, running, end, started, endAll } = stage(
      createClientTurns({ running: 2, waiting: 10, waitingPerClient: 10 }),
    );
    for (const client of ['a', 'b', 'c', 'd', 'e']) void ask(client);
    expect(running()).toEqual(['a', 'b']);
    await end('a');
    expect(running()).toEqual(['b', 'c']);
    await endAll();
    expect(started).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test('always include a free one for the next client, however many a greedy client wants', async () => {
    const { ask, running, end } = stage(createClientTurns({ running: 8, waiting: 100, waitingPerClient: 100 }));
    for (let at = 0; at < 20; at++) void ask('greedy', `greedy ${at}`);
    expect(running()).toHaveLength(4);
    for (const client of ['b', 'c']) void ask(client);
    expect(running().slice(4)).toEqual(['b', 'c']);
    // Three are free now, and the greedy one has three: one that ends is not made up for.
    await end('greedy 0');
    expect(running()).toEqual(['greedy 1', 'greedy 2', 'greedy 3', 'b', 'c']);
    await end('greedy 1');
    expect(running()).toEqual(['greedy 2', 'greedy 3', 'b', 'c', 'greedy 4']);
  });

  test('are freed when a task fails, and the next waiting task takes them', async () => {
    const turns = createClientTurns({ running: 1, waiting: 2, waitingPerClient: 2 });
    const fails = turns.run('a', forever, async () => {
      await settle();
      throw new Error('no');
    });
    const { started, ask, endAll } = stage(turns);
    const waits = ask('b');
    await expect(fails).rejects.toThrow('no');
    await settle();
    expect(started).toEqual(['b']);
    await endAll();
    expect(await waits).toBe('b');
  });
});

describe('clients that wait', () => {
  const one = () => stage(createClientTurns({ running: 1, waiting: 100, waitingPerClient: 100 }));

  test('are served round robin, one task each, in the order of arrival', async () => {
    const { ask, started, endAll } = one();
    void ask('first');
    for (let at = 0; at < 3; at++) void ask('a', `a${at}`);
    void ask('b', 'b0');
    void ask('b', 'b1');
    void ask('c', 'c0');
    await endAll();
    expect(started).toEqual(['first', 'a0', 'b0', 'c0', 'a1', 'b1', 'a2']);
  });

  test('move behind those that came meanwhile, once they were served', async () => {
    const { ask, started, end, endAll } = one();
    void ask('first');
    void ask('a', 'a0');
    void ask('a', 'a1');
    await end('first');
    void ask('b', 'b0');
    void ask('c', 'c0');
    await endAll();
    expect(started).toEqual(['first', 'a0', 'a1', 'b0', 'c0']);
  });

  test('of one IPv6 site have one turn together, and share it round robin', async () => {
    const { ask, started, endAll } = one();
    void ask('first');
    const networks = ['2001:db8:1:0::/64', '2001:db8:1:1::/64', '2001:db8:1:2::/64'];
    for (const round of [0, 1])
      for (const [at, network] of networks.entries()) void ask(network, `site ${at}.${round}`);
    for (let at = 0; at < 3; at++) void ask('192.0.2.1', `v4 ${at}`);
    void ask('2001:db8:2:0::/64', 'other site');
    await endAll();
    expect(started).toEqual([
      ...['first', 'site 0.0', 'v4 0', 'other site', 'site 1.0', 'v4 1', 'site 2.0', 'v4 2'],
      ...['site 0.1', 'site 1.1', 'site 2.1'],
    ]);
  });

  test('are skipped while they hold more than is left, and served later', async () => {
    const { ask, running, end, started } = stage(createClientTurns({ running: 4, waiting: 10, waitingPerClient: 10 }));
    for (const name of ['a0', 'a1', 'a2']) void ask('a', name);
    for (const client of ['b', 'c', 'd']) void ask(client);
    expect(running()).toEqual(['a0', 'a1', 'b', 'c']);
    await end('b');
    expect(running()).toEqual(['a0', 'a1', 'c', 'd']);
    await end('c');
    await end('d');
    expect(running()).toEqual(['a0', 'a1']);
    await end('a0');
    expect(running()).toEqual(['a1', 'a2']);
    expect(started).toEqual(['a0', 'a1', 'b', 'c', 'd', 'a2']);
  });
});

describe('a task is refused at once', () => {
  test('when its client has the maximum of waiting tasks, and other clients are not affected', async () => {
    const { ask, started, endAll } = stage(createClientTurns({ running: 1, waiting: 100, waitingPerClient: 2 }));
    const all = ['a0', 'a1', 'a2', 'a3'].map((name) => outcomeOf(ask('a', name)));
    const other = ask('b');
    expect(await all[3]).toBe('refused');
    await endAll();
    expect(await Promise.all([...all, other])).toEqual(['a0', 'a1', 'a2', 'refused', 'b']);
    expect(started).not.toContain('a3');
  });

  test('when all waiting places are taken, but a new client still finds one', async () => {
    const { ask, started, endAll } = stage(createClientTurns({ running: 1, waiting: 8, waitingPerClient: 8 }));
    void ask('first');
    const greedy = ['a', 'b', 'c'].flatMap((client) =>
      Array.from({ length: 8 }, (_, at) => outcomeOf(ask(client, `${client}${at}`))),
    );
    const late = ask('late');
    const last = outcomeOf(ask('last'));
    await endAll();
    expect(await late).toBe('late');
    expect(await last).toBe('refused');
    expect((await Promise.all(greedy)).filter((outcome) => outcome === 'refused')).toHaveLength(24 - 7);
    expect(started.slice(0, 5)).toEqual(['first', 'a0', 'b0', 'c0', 'late']);
  });

  test('and holds no place: a place that becomes free is there for the next task', async () => {
    const { ask, end, endAll } = stage(createClientTurns({ running: 1, waiting: 1, waitingPerClient: 1 }));
    void ask('a');
    void ask('b');
    for (let at = 0; at < 5; at++) expect(await outcomeOf(ask('c'))).toBe('refused');
    await end('a');
    const waits = ask('c');
    await endAll();
    expect(await waits).toBe('c');
  });

  test('with an error of its own name', async () => {
    const turns = createClientTurns({ running: 1, waiting: 0, waitingPerClient: 1 });
    const { ask, endAll } = stage(turns);
    void ask('a');
    await expect(ask('b')).rejects.toMatchObject({
      name: 'TurnRefused',
      message: 'too many tasks wait for their turn',
    });
    await endAll();
  });
});

describe('a reserve', () => {
  const limits = { running: 3, waiting: 4, waitingPerClient: 4, reserved: { running: 1, waiting: 2 } };

  test('of running places is left to tasks that may use it, at once and while waiting', async () => {
    const { ask, running, end } = stage(createClientTurns(limits));
    for (const client of ['a', 'b', 'c']) void ask(client);
    expect(running()).toEqual(['a', 'b']);
    void ask('buyer', 'buyer 0', forever, true);
    void ask('buyer', 'buyer 1', forever, true);
    expect(running()).toEqual(['a', 'b', 'buyer 0']);
    // One is free, and reserved; the buyer would hold more than is left, and the one that has waited longest may not have it.
    await end('a');
    expect(running()).toEqual(['b', 'buyer 0']);
    await end('b');
    expect(running()).toEqual(['buyer 0', 'c']);
    await end('buyer 0');
    expect(running()).toEqual(['c', 'buyer 1']);
  });

  test('of waiting places is left to them as well, and they may use the other places too', async () => {
    const { ask, endAll } = stage(createClientTurns(limits));
    for (const client of ['a', 'b']) void ask(client);
    void ask('buyer', 'buyer', forever, true);
    const strangers = ['c', 'd', 'e'].map((client) => outcomeOf(ask(client)));
    const buyers = ['f', 'g', 'h'].map((client) => outcomeOf(ask(client, client, forever, true)));
    await endAll();
    expect(await Promise.all(strangers)).toEqual(['c', 'd', 'refused']);
    expect(await Promise.all(buyers)).toEqual(['f', 'g', 'refused']);
  });
});

describe('a task that is aborted', () => {
  const gone = new Error('gone');

  test('before the call is not run', async () => {
    const { ask, started } = stage(createClientTurns({ running: 1, waiting: 1, waitingPerClient: 1 }));
    expect(await outcomeOf(ask('a', 'a', AbortSignal.abort(gone)))).toBe(gone);
    expect(started).toEqual([]);
  });

  test('while it waits rejects with its own reason, frees its place, and delays no other task', async () => {
    const { ask, started, endAll } = stage(createClientTurns({ running: 1, waiting: 3, waitingPerClient: 2 }));
    const leaves = new AbortController();
    void ask('first');
    void ask('a', 'a0');
    const waits = outcomeOf(ask('a', 'a1', leaves.signal));
    void ask('b');
    expect(await outcomeOf(ask('c'))).toBe('refused');
    leaves.abort(gone);
    expect(await waits).toBe(gone);
    void ask('c');
    await endAll();
    expect(started).toEqual(['first', 'a0', 'b', 'c']);
  });

  test('while another task of its client waits does not lose the client’s turn, in its site and among all', async () => {
    const { ask, started, endAll } = stage(createClientTurns({ running: 1, waiting: 20, waitingPerClient: 4 }));
    const leaves = new AbortController();
    void ask('first');
    const waits = outcomeOf(ask('2001:db8:1:0::/64', 'leaves', leaves.signal));
    void ask('2001:db8:1:0::/64', 'stays');
    void ask('2001:db8:1:1::/64', 'next network');
    void ask('192.0.2.1', 'next site');
    leaves.abort(gone);
    expect(await waits).toBe(gone);
    await endAll();
    expect(started).toEqual(['first', 'stays', 'next site', 'next network']);
  });

  test('and was the only one of its site leaves no entry behind', async () => {
    const { ask, started, endAll } = stage(createClientTurns({ running: 1, waiting: 3, waitingPerClient: 2 }));
    const leaves = new AbortController();
    void ask('first');
    const waits = outcomeOf(ask('2001:db8:1:0::/64', 'leaves', leaves.signal));
    void ask('b');
    leaves.abort(gone);
    expect(await waits).toBe(gone);
    // Comes back, behind those that stayed.
    void ask('2001:db8:1:0::/64', 'back');
    await endAll();
    expect(started).toEqual(['first', 'b', 'back']);
  });

  test('just as it starts keeps its place, and does not affect the others', async () => {
    const { ask, started, end, endAll } = stage(createClientTurns({ running: 1, waiting: 3, waitingPerClient: 3 }));
    const leaves = new AbortController();
    // Heard after the place was passed on, and before the next task starts.
    void ask('first').then(() => {
      expect(started).toEqual(['first']);
      leaves.abort(gone);
    });
    const waits = ask('a', 'a0', leaves.signal);
    void ask('a', 'a1');
    await end('first');
    expect(leaves.signal.aborted).toBe(true);
    expect(started).toEqual(['first', 'a0']);
    await endAll();
    expect(await waits).toBe('a0');
    expect(started).toEqual(['first', 'a0', 'a1']);
  });
});
