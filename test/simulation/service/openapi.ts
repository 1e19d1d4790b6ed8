/** In place of the description of the interface, which a start would make anew each time: nothing of it is asked for here. */
export const createOpenApi = async (): Promise<object> => ({});
