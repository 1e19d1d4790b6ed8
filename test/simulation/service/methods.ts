// In place of the routes that refuse every other method on each path: eight for each route at every start. Only methods that are served are used here.

export const acceptEveryMethod = (): void => undefined;
export const refuseOtherMethods = (): void => undefined;
