import { registerHooks } from 'node:module';
import { installVirtualTime } from './engine/time.ts';
import { installFetch } from './network/fetch.ts';
import { plantInto } from './planted/plant.ts';
import { standInFor } from './seam.ts';

// Loaded before the program (`node --import`): puts simulated parts in the place of real ones, and planted faults into the source, in memory.

installVirtualTime();
installFetch();

registerHooks({
  resolve(specifier, context, next) {
    const standIn = standInFor(specifier, context.parentURL ?? '');
    return standIn ? { url: new URL(standIn, import.meta.url).href, shortCircuit: true } : next(specifier, context);
  },
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.includes('/src/') || loaded.source == null) return loaded;
    const text =
      typeof loaded.source === 'string' ? loaded.source : Buffer.from(loaded.source as Uint8Array).toString();
    return { ...loaded, source: plantInto(url, text) };
  },
});
