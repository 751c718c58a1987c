/** Names of the tasks and policies that longrun brings. */
export const BUNDLED = { tasks: ["diamonds", "movie", "wage"], policies: ["quickstart"] } as const;
