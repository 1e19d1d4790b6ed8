import type { Upstreams } from '../../../src/upstream/client/client.ts';

/** Upstreams that pass every request on. `note` first hears the last part of the address that is asked for. */
export function watchedUpstreams(upstreams: Upstreams, note: (name: string) => void): Upstreams {
  const noted = ({ url }: { url: string }) => note(new URL(url).pathname.split('/').at(-1) ?? '');
  return {
    ...upstreams,
    open: (options) => {
      const upstream = upstreams.open(options);
      return {
        ...upstream,
        fetch: (request) => {
          noted(request);
          return upstream.fetch(request);
        },
        json: (request, schema) => {
          noted(request);
          return upstream.json(request, schema);
        },
      };
    },
  };
}
