import { type PoolOptions, type PoolWorker, ThreadsPoolWorker, type WorkerRequest } from 'vitest/node';

type Listener = (argument: unknown) => void;
type Run = Extract<WorkerRequest, { type: 'run' }>;

const RUNS_PER_THREAD = 200;

/** The one thread of this process, what it was started with, and whether it runs tests now. */
interface Resident {
  readonly thread: ThreadsPoolWorker;
  isStarted: boolean;
  isRunning: boolean;
  runs: number;
}
let resident: Resident | null = null;

/**
 * A worker of Vitest that outlives its run. Vitest ends a run's thread with the run, and each mutant is a run: loading the modules anew takes two
 * seconds, the tests of one mutant a tenth of one. The next run gets the same thread, with the modules that it has loaded; test files and set-up
 * files are loaded anew by Vitest itself. A mutant of what runs while a module loads gets a thread of its own.
 */
export function createResidentWorker(options: PoolOptions): PoolWorker {
  const listeners: [event: string, listener: Listener][] = [];
  let setup: object = {};

  function emit(type: 'started' | 'stopped'): void {
    for (const [event, listener] of listeners)
      if (event === 'message') listener({ type, __vitest_worker_response__: true });
  }

  /** After the tests that run now, because the thread refuses a second run beside them. */
  function whenIdle(done: () => void): void {
    if (!resident?.isRunning) {
      done();
      return;
    }
    const onMessage = (message: unknown) => {
      if (!isFinished(message)) return;
      resident?.thread.off('message', onMessage);
      done();
    };
    resident.thread.on('message', onMessage);
  }

  async function open(): Promise<Resident> {
    const opened: Resident = { thread: new ThreadsPoolWorker(options), isStarted: false, isRunning: false, runs: 0 };
    await opened.thread.start();
    opened.thread.on('message', (message) => {
      if (isFinished(message)) opened.isRunning = false;
    });
    return opened;
  }

  async function close(): Promise<void> {
    const closed = resident;
    resident = null;
    await closed?.thread.stop();
  }

  function send(message: WorkerRequest): void {
    if (!resident) return;
    if (message.type === 'stop') whenIdle(() => emit('stopped'));
    else if (message.type === 'start' && resident.isStarted) {
      setup = message.context;
      emit('started');
    } else if (message.type === 'run') {
      resident.isRunning = true;
      resident.runs++;
      resident.thread.send({ ...message, context: { ...setup, ...message.context } } as Run);
    } else {
      if (message.type === 'start') resident.isStarted = true;
      resident.thread.send(message);
    }
  }

  return {
    name: 'resident',
    cacheFs: true,
    async start() {
      if (isOfLoading(options) || (resident?.runs ?? 0) >= RUNS_PER_THREAD) await close();
      resident ??= await open();
    },
    async stop() {
      for (const [event, listener] of listeners.splice(0)) resident?.thread.off(event, listener);
      if (isOfLoading(options)) await close();
    },
    send,
    on(event, listener) {
      listeners.push([event, listener]);
      resident?.thread.on(event, listener);
    },
    off(event, listener) {
      resident?.thread.off(event, listener);
    },
    deserialize: (data) => data,
  };
}

/** Whether this run is of a mutant that takes effect while its module is loaded. */
function isOfLoading({ project }: PoolOptions): boolean {
  return (project.getProvidedContext() as { mutantActivation?: string }).mutantActivation === 'static';
}

function isFinished(message: unknown): boolean {
  return (message as { type?: string }).type === 'testfileFinished';
}
