import { z } from 'zod';

/** An image beside a text. What cannot be read of it must not hide the text. */
const thumbnail = z
  .object({
    /** `source` in the summary and the action API, `url` in search, where it may begin with `//`. */
    source: z.string().optional(),
    url: z.string().optional(),
    width: z.int().positive().nullish(),
    height: z.int().positive().nullish(),
  })
  .nullish()
  .catch(null);

const image = z.object({ source: z.string(), width: z.int(), height: z.int() });

/** REST search, `/w/rest.php/v1/search/page`. */
export const restSearchSchema = z.object({
  pages: z.array(
    z.object({
      key: z.string(),
      title: z.string(),
      excerpt: z.string().nullable(),
      description: z.string().nullish(),
      thumbnail,
    }),
  ),
});

/** The action API's error, which comes with HTTP 200. */
const error = z.object({ code: z.string() }).optional();

/** Action API, `list=search`. */
export const actionSearchSchema = z.object({
  error,
  query: z.object({ search: z.array(z.object({ title: z.string(), snippet: z.string() })) }).optional(),
});

/** REST summary, `/api/rest_v1/page/summary/{title}`. */
export const summarySchema = z.object({
  type: z.string(),
  title: z.string(),
  namespace: z.object({ id: z.int() }).optional(),
  timestamp: z.string().optional(),
  thumbnail: image.optional(),
  originalimage: image.optional(),
  titles: z.object({ canonical: z.string() }).optional(),
  description: z.string().optional().catch(undefined),
  extract: z.string(),
});

const page = z.object({
  ns: z.int().optional(),
  title: z.string(),
  /** True or absent in format version 2; an empty string or absent in version 1. */
  missing: z.union([z.boolean(), z.string()]).optional(),
  invalid: z.union([z.boolean(), z.string()]).optional(),
  extract: z.string().optional(),
  description: z.string().optional().catch(undefined),
  thumbnail,
  revisions: z.array(z.object({ timestamp: z.string() })).optional(),
  pageprops: z.object({ disambiguation: z.string().optional() }).optional(),
});

/** Action API, `prop=extracts|revisions|pageprops`: pages in a list (format version 2) or by their id (version 1). */
export const articleSchema = z.object({
  error,
  query: z
    .object({
      pages: z.union([z.array(page), z.record(z.string(), page).transform((pages) => Object.values(pages))]).optional(),
    })
    .optional(),
});
