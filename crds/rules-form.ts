/** The form of names, sizes and addresses, with a sentence where a schema's `pattern` would show an expression only. */
import type { Rule } from "./rules.ts";

const SUBDOMAIN = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SIZE = /^[0-9]+([.][0-9]+)?(k|Ki|[MGTPE]i?)?$/;

const dots = "has lower-case letters, digits, hyphens and dots, with a letter or digit first and last";
const hyphens = "has lower-case letters, digits and hyphens, with a letter or digit first and last";
const aClaim = `the name of a claim ${dots}; kubectl get pvc lists those of a namespace`;
const aSize = "a size is a number of bytes with a unit such as Gi; write it as 100Gi";

/** Whether the text is a size; rules about its value leave another text to the rule about its form. */
export const isSize = (text: string): boolean => SIZE.test(text);

const FORMS: [at: string, form: RegExp, message: string][] = [
  ["spec.tasks[].name", LABEL, `the name of a task ${hyphens}; correct it`],
  ["spec.tasks[].publicData.persistentVolumeClaim.claimName", SUBDOMAIN, aClaim],
  ["spec.tasks[].privateData.persistentVolumeClaim.claimName", SUBDOMAIN, aClaim],
  ["spec.model.volume.persistentVolumeClaim.claimName", SUBDOMAIN, aClaim],
  [
    "spec.prompts.packages[]",
    /^[A-Za-z0-9][-A-Za-z0-9._]*$/,
    "the name of a Python package has letters, digits, hyphens, dots and underscores, with a letter or digit first; give it as pip knows it, without a version",
  ],
  ["spec.learner.storage.size", SIZE, aSize],
  [
    "spec.learner.storage.className",
    SUBDOMAIN,
    `the name of a StorageClass ${dots}; kubectl get storageclass lists them`,
  ],
  ["spec.learner.podTemplate.spec.volumes[].emptyDir.sizeLimit", SIZE, aSize],
  [
    "spec.actors.runtimeClassName",
    SUBDOMAIN,
    `the name of a RuntimeClass ${dots}; kubectl get runtimeclass lists them`,
  ],
  ["spec.initFrom.run", LABEL, `the name of a TrainingRun ${hyphens}; kubectl get trun lists those of a namespace`],
  [
    "spec.notifications.webhook.url",
    /^https?:\/\/[^\s/]\S*$/,
    "the address of a webhook begins with http:// or https:// and a host, and has no spaces; correct it",
  ],
  [
    "spec.notifications.webhook.urlFrom.secretKeyRef.name",
    SUBDOMAIN,
    `the name of a Secret ${dots}; kubectl get secrets lists those of a namespace`,
  ],
  [
    "spec.notifications.webhook.urlFrom.secretKeyRef.key",
    /^[-._a-zA-Z0-9]+$/,
    "a key of a Secret has letters, digits, hyphens, dots and underscores; correct it",
  ],
  ["spec.queueName", SUBDOMAIN, `the name of a LocalQueue ${dots}; kubectl get localqueues lists those of a namespace`],
  [
    "spec.managedBy",
    /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?\/[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/,
    "managedBy is a domain, a slash and a name, such as kueue.x-k8s.io/multikueue; correct it",
  ],
];

export const FORM_RULES: Rule[] = FORMS.map(([at, form, message]) => ({
  at,
  fields: [],
  message,
  holds: (text: string) => form.test(text),
}));
