/** Names of the tasks and policies that longrun contains. */
export const BUNDLED = { tasks: ["diamonds", "movie", "wage"], policies: ["quickstart"] } as const;
