/** No thread syncs a log in the simulation, because nobody can say when it ends: each commit syncs its own. */
export const openLogSync = (): null => null;
