/** The webhook of a finished run. */
import type { Part } from "../../part.ts";
import { isOver } from "../lifecycle/lifecycle.ts";
import { isUntold, type NotificationMemory, notify } from "./notification.ts";

export const notification: Part<NotificationMemory, undefined, never> = {
  name: "notification",
  owes: isUntold,
  reconcile: async (look) => notify(look),
  report({ observed, memory }, _, { lifecycle }) {
    // A run that was resumed after a failure ends again, and its webhook is posted again.
    const known = memory.notification ?? observed.run.status?.notification;
    return isOver(lifecycle.stage) && known ? { status: { notification: known } } : {};
  },
};
