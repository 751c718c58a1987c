/** Names of the tasks and policies that longrun contains. */
export const BUNDLED = { tasks: ["diamonds", "movie", "wage"], policies: ["quickstart"] } as const;

export const isTaskName = (name: string): boolean => BUNDLED.tasks.some((task) => task === name);
