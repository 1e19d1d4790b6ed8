import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { installVirtualTime } from './engine/time.ts';
import { installFetch } from './network/fetch.ts';
import { plantInto } from './planted/plant.ts';
import { endOf, noteImports, standInFor } from './seam.ts';

// Loaded before the program (`node --import`): puts simulated parts in the place of real ones, and planted faults into the source, in memory.

installVirtualTime();
installFetch();

/** Without its types, by the text: most files are the same each time that the service is loaded anew. */
const known = new Map<string, string>();

function stripped(text: string): string {
  const script = known.get(text) ?? stripTypeScriptTypes(text);
  known.set(text, script);
  return script;
}

registerHooks({
  resolve(specifier, context, next) {
    const standIn = standInFor(specifier, context.parentURL ?? '');
    if (standIn) return { url: new URL(standIn, import.meta.url).href, shortCircuit: true };
    const resolved = next(specifier, context);
    // A module that was loaded anew imports those of the same loading.
    const [again] = /\?service=\d+$/.exec(context.parentURL ?? '') ?? [];
    return again === undefined ? resolved : { ...resolved, url: `${resolved.url}${endOf(resolved.url, again)}` };
  },
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.includes('/src/') || loaded.source == null) return loaded;
    const text =
      typeof loaded.source === 'string' ? loaded.source : Buffer.from(loaded.source as Uint8Array).toString();
    const [file = url, again] = url.split('?service=');
    noteImports(file, text);
    const planted = plantInto(file, text);
    return again === undefined
      ? { ...loaded, source: planted }
      : { ...loaded, format: 'module', source: stripped(planted) };
  },
});
