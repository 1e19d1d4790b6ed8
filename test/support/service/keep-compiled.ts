import { subscribe } from 'node:diagnostics_channel';
import { flushCompileCache } from 'node:module';

// A preload of services under test. Node writes NODE_COMPILE_CACHE only when a process exits, and most of these are killed:
// so this writes it once the service listens. Then it has loaded all its modules.
subscribe('tracing:net.server.listen:asyncEnd', () => flushCompileCache());
