import { createCollector } from '../../../../src/collector/collector.ts';
import { openChainDatabase } from '../../../../src/collector/store/database.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { quiet } from '../../quiet.ts';
import { openClient } from '../client.ts';
import { createSwapScanner } from './swap-scanner.ts';

// A collector in a process of its own, which tests kill: <program> <rpc url> <database file>. Its spans are small, so that a kill can come
// between many commits.

const [, , url = '', file = ''] = process.argv;
const chain = openClient({ rpcUrls: [url], chainId: 5042, timeoutMs: 60_000 });
const limits = { requestsPerSecond: 1000, blocksPerRequest: 2, feeSpan: 16, logSpan: 20, pollIntervalMs: 5 };
const db = openChainDatabase(file);
createCollector({ clock: systemClock, log: quiet }, chain, db, { limits, scanners: [createSwapScanner()] }).start();
process.stdout.write('started\n');
