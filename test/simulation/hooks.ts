import http from 'node:http';
import { registerHooks, syncBuiltinESMExports } from 'node:module';
import { installVirtualTime } from './engine/time.ts';
import { installFetch } from './network/fetch.ts';
import { plantInto } from './planted/plant.ts';
import { STAND_INS } from './seam.ts';

// Loaded before the program (`node --import`): puts simulated parts in the place of real ones, and planted faults into the source, in memory.

installVirtualTime();
installFetch();
// The service refuses every other method by a route of its own on each path: thirty more routes for each, at every start.
http.METHODS.splice(0, Number.POSITIVE_INFINITY, 'GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE');
syncBuiltinESMExports();

registerHooks({
  resolve(specifier, context, next) {
    const standIn = STAND_INS.find(({ replaces, from }) => replaces(specifier) && from.test(context.parentURL ?? ''));
    return standIn ? { url: new URL(standIn.by, import.meta.url).href, shortCircuit: true } : next(specifier, context);
  },
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.includes('/src/') || loaded.source == null) return loaded;
    const text =
      typeof loaded.source === 'string' ? loaded.source : Buffer.from(loaded.source as Uint8Array).toString();
    return { ...loaded, source: plantInto(url, text) };
  },
});
