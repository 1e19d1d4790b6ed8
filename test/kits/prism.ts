import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGuarded } from '../../dev/child.ts';
import { programOfKit } from '../../scripts/clients/kits.ts';
import { ownPort } from '../support/service/own-port.ts';

/** What Prism found in one exchange. `location` begins with `request` or `response`. */
interface Violation {
  readonly location: readonly string[];
  readonly severity: string;
  readonly message: string;
}

/** One exchange that went through Prism. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly violations: readonly Violation[];
}

const PROGRAM = programOfKit('@stoplight/prism-cli/dist/index.js');
/** Longer than the service takes, so that the service itself refuses too long ones. In bytes. */
const MAX_HEADERS = 65_536;
const LONG_HEADERS = `--max-http-header-size=${MAX_HEADERS}`;

/** Prism says so of a route that the document does not have, such as a page. It then compares nothing. */
const UNKNOWN_ROUTE = 'Selected route not found';

export const isKnownRoute = ({ violations }: Exchange): boolean =>
  violations.every(({ message }) => message !== UNKNOWN_ROUTE);

/**
 * What in an exchange contradicts the document, as text. An answer must be as it is described. The document must allow
 * a request that was served. A request that was refused may be wrong, because tests send wrong ones. Warnings about
 * requests are about features that Prism lacks.
 */
export function faultsOf({ method, path, status, violations }: Exchange): string[] {
  const isFault = ({ location: [side], severity }: Violation) =>
    side === 'response' || (status < 400 && severity === 'Error');
  return violations
    .filter(isFault)
    .map(({ location, message }) => `${method} ${path} ${status}: ${location.join('.')}: ${message}`);
}

/**
 * Puts Prism before a service. It compares what passes with the service's own OpenAPI document, and changes nothing.
 * `alter` makes another document. Before Prism stands a server that keeps what Prism found: a test sends its requests
 * to `origin`, whatever it does with the answers.
 */
export async function startPrism(upstream: string, alter = (document: string) => document) {
  const folder = mkdtempSync(join(tmpdir(), 'percall-prism-'));
  const file = join(folder, 'openapi.json');
  writeFileSync(file, alter(await (await fetch(`${upstream}/openapi.json`)).text()));
  const port = await ownPort();
  const args = [LONG_HEADERS, PROGRAM, 'proxy', file, upstream, '--port', String(port), '--verboseLevel', 'info'];
  const prism = await startListening(args);
  const exchanges: Exchange[] = [];
  const front = createServer({ maxHeaderSize: MAX_HEADERS }, (asked, answer) => {
    const { method = 'GET', url: path = '/', headers } = asked;
    // Prism fails at an answer without a body, and the document does not describe HEAD.
    const to = method === 'HEAD' ? new URL(upstream).port : port;
    const forwarded = request({ host: '127.0.0.1', port: to, method, path, headers }, (response) => {
      const { statusCode: status = 0, headers: found } = response;
      const violations: Violation[] = JSON.parse(String(found['sl-violations'] ?? '[]'));
      if (method !== 'HEAD') exchanges.push({ method, path, status, violations });
      answer.writeHead(status, response.rawHeaders);
      response.pipe(answer);
    });
    forwarded.on('error', (error) => answer.destroy(error));
    asked.pipe(forwarded);
  });
  const at = await ownPort();
  front.listen(at, '127.0.0.1');
  await once(front, 'listening');
  return {
    origin: `http://127.0.0.1:${at}`,
    exchanges,
    async stop() {
      front.closeAllConnections();
      front.close();
      await prism.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

export type Prism = Awaited<ReturnType<typeof startPrism>>;

/** Starts Prism, and waits until it says that it listens. */
async function startListening(args: readonly string[]) {
  const listening = Promise.withResolvers<void>();
  let said = '';
  const onOutput = (text: string) => {
    said += text;
    if (said.includes('Prism is listening')) listening.resolve();
    if (said.includes('fatal')) listening.reject(new Error(`Prism did not start: ${said}`));
  };
  const prism = await startGuarded(process.execPath, args, { onOutput });
  await listening.promise;
  return prism;
}
