import { once } from 'node:events';

/** How often each function of a script ran since the last reading, as V8's inspector tells it. */
interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly count: number }[];
  }[];
}

/** The files of src that a process runs, counted by V8 over its inspector's port. The counts start with the first `take`. */
export async function openCoverage(port: number) {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
    webSocketDebuggerUrl: string;
  }[];
  const socket = new WebSocket(String(targets[0]?.webSocketDebuggerUrl));
  await once(socket, 'open');
  let sent = 0;
  const ask = async <T>(method: string, params: object = {}): Promise<T> => {
    const id = ++sent;
    const answered = new Promise<T>((resolve, reject) => {
      const read = ({ data }: MessageEvent): void => {
        const answer = JSON.parse(String(data)) as { id?: number; result: T; error?: { message: string } };
        if (answer.id !== id) return;
        socket.removeEventListener('message', read);
        answer.error ? reject(new Error(answer.error.message)) : resolve(answer.result);
      };
      socket.addEventListener('message', read);
    });
    socket.send(JSON.stringify({ id, method, params }));
    return answered;
  };
  await ask('Profiler.enable');
  await ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return {
    /** Files below src, by path from the root, in which a named function ran since the last reading. */
    take: async (): Promise<string[]> => {
      const { result } = await ask<{ result: ScriptCoverage[] }>('Profiler.takePreciseCoverage');
      const ran = result.filter(({ functions }) =>
        functions.some(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0),
      );
      return ran.flatMap(({ url }) => url.match(/\/(src\/[^?]*\.ts)$/)?.[1] ?? []).sort();
    },
    close: (): void => socket.close(),
  };
}
