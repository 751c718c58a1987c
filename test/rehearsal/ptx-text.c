/*
 * Reads PTX as Triton writes it. Each instruction is read once; an instruction that the host cannot execute ends the process with its text.
 * A kernel's registers are numbered through: predicates, then 16, 32 and 64 bits, then the special ones.
 */
#define _GNU_SOURCE
#include "ptx.h"
#include "rehearsal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))
static const char *const BANKS[] = {"%p", "%rs", "%r", "%rd"};
static const char *const SPECIAL[] = {"%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%laneid", "%ntid.x", "_"};
/* In the order of enum ptx_kind. */
static const char *const SIMPLE[] = {"mov", "add", "sub",  "mul",  "mad", "fma", "and", "or",  "xor",  "not",   "neg", "abs", "max", "min",
                                     "shl", "shr", "bfe", "setp", "selp", "cvt", "ex2", "lg2", "sqrt", "rsqrt", "rcp", "div", "rem"};
/* In the order of enum ptx_mode, from LT. */
static const char *const MODES[] = {"lt", "le", "gt", "ge", "eq", "ne", "lo", "hi", "wide", "shared", "global", "trans", "bfly", "idx", "max", "min"};

struct reader {
  struct ptx *kernel;
  int bank[COUNT(BANKS)], specials;
};

static int register_named(const struct reader *it, const char *name) {
  for (int i = 0; i < COUNT(SPECIAL); i++)
    if (!strcmp(name, SPECIAL[i])) return it->specials + i;
  static const int longest_first[] = {1, 3, 0, 2};
  for (int i = 0; i < COUNT(BANKS); i++) {
    const char *bank = BANKS[longest_first[i]];
    if (!strncmp(name, bank, strlen(bank))) return it->bank[longest_first[i]] + atoi(name + strlen(bank));
  }
  end_process(name);
}

static struct ptx_operand operand_of(const struct reader *it, char *text) {
  text += strspn(text, " \t\n");
  for (char *end = text + strlen(text); end > text && strchr(" \t\n", end[-1]);) *--end = 0;
  char *second = strchr(text, '|'); /* a shuffle's second result is not used */
  if (second) *second = 0;
  if (*text == '%' || *text == '_') return (struct ptx_operand){register_named(it, text), 0};
  if (!strncmp(text, "0f", 2) || !strncmp(text, "0d", 2)) return (struct ptx_operand){-1, strtoull(text + 2, 0, 16)};
  if (!strcmp(text, "global_smem")) return (struct ptx_operand){-1, 0};
  if (!strchr("-0123456789", *text)) end_process(text);
  return (struct ptx_operand){-1, (uint64_t)strtoll(text, 0, 0)};
}

static struct ptx_type type_named(const char *text) {
  if (!strcmp(text, "pred")) return (struct ptx_type){'p', 1};
  if (!strcmp(text, "bf16")) return (struct ptx_type){'h', 2};
  if (!strcmp(text, "bf16x2")) return (struct ptx_type){'H', 4};
  if (strchr("sufb", *text) && atoi(text + 1)) return (struct ptx_type){*text, atoi(text + 1) / 8};
  return (struct ptx_type){0, 0};
}

static enum ptx_kind kind_of(char *const *part, int parts, const char *text) {
  for (int i = 0; i < COUNT(SIMPLE); i++)
    if (!strcmp(part[0], SIMPLE[i])) return i;
  const char *name = part[0], *next = parts > 1 ? part[1] : "";
  if (!strcmp(name, "ld")) return strcmp(next, "param") ? LOAD : LOAD_PARAMETER;
  if (!strcmp(name, "st")) return STORE;
  if (!strcmp(name, "bra")) return BRANCH;
  if (!strcmp(name, "ret")) return RETURN;
  if (!strcmp(name, "bar") || !strcmp(name, "fence")) return NOTHING; /* threads are in step */
  if (!strcmp(name, "cp")) return parts > 2 && (!strcmp(part[2], "cg") || !strcmp(part[2], "ca")) ? COPY_ASYNC : NOTHING;
  if (!strcmp(name, "ldmatrix")) return LOAD_MATRIX;
  if (!strcmp(name, "stmatrix")) return STORE_MATRIX;
  if (!strcmp(name, "mma")) return MMA;
  if (!strcmp(name, "wgmma")) return strcmp(next, "mma_async") ? NOTHING : WGMMA;
  if (!strcmp(name, "shfl")) return SHUFFLE;
  if (!strcmp(name, "redux")) return REDUCE;
  end_process(text);
}

/* Reads `{a, b}, [c+16], d`: the operands one after the other, the lengths of the lists, and the offsets of addresses. */
static void read_operands(const struct reader *it, struct instruction *in, const char *text) {
  int depth = 0, list = 0, addresses = 0, length = 0;
  char current[2048];
  for (const char *c = text;; c++) {
    if (*c == '{' || *c == '[') {
      depth++;
      length = 0;
      continue;
    }
    if (*c && !strchr(",}]", *c)) {
      current[length++] = *c;
      continue;
    }
    current[length] = 0;
    length = 0;
    char *plus = *c == ']' ? strchr(current, '+') : 0;
    if (plus) {
      in->offset[addresses] = atoll(plus + 1);
      *plus = 0;
    }
    if (strspn(current, " \t\n") < strlen(current)) {
      in->operand[in->count++] = operand_of(it, current);
      in->list[list]++;
    }
    if (*c == ']') addresses++;
    if (*c == '}' || *c == ']') depth--;
    else if (*c == ',' && depth == 0 && list < 3) list++;
    if (!*c) return;
  }
}

static void read_instruction(const struct reader *it, struct instruction *in, char *line) {
  *in = (struct instruction){.guard = -1, .target = -1, .text = strdup(line)};
  if (*line == '@') {
    in->negated = line[1] == '!';
    char guard[32];
    int used;
    sscanf(line + 1 + in->negated, "%31s%n", guard, &used);
    in->guard = register_named(it, guard);
    line += 1 + in->negated + used;
    line += strspn(line, " \t");
  }
  char name[160];
  int used;
  sscanf(line, "%159s%n", name, &used);
  const char *rest = line + used;
  char *part[16], *save;
  int parts = 0;
  for (char *p = strtok_r(name, ".", &save); p && parts < 16; p = strtok_r(0, ".", &save)) part[parts++] = p;
  in->kind = kind_of(part, parts, in->text);
  in->type = type_named(part[parts - 1]);
  if (parts > 2) in->to = type_named(part[parts - 2]);
  if (in->kind == NOTHING || in->kind == RETURN) return;
  if (in->kind == BRANCH) {
    char label[64];
    sscanf(rest, "%63s", label);
    in->text = strdup(label);
    return;
  }
  for (int i = 1; i < parts; i++)
    for (int j = 0; j < COUNT(MODES); j++)
      if (!strcmp(part[i], MODES[j]) && !((in->kind == LOAD_MATRIX || in->kind == STORE_MATRIX) && LT + j == SHARED)) in->mode = LT + j;
  if (in->kind == LOAD_PARAMETER) {
    char to[32];
    sscanf(rest, " %31[^,]", to);
    in->operand[0] = operand_of(it, to);
    in->target = atoi(strstr(rest, "_param_") + 7);
    return;
  }
  for (int i = 0; i < parts && in->kind == WGMMA; i++)
    if (!strncmp(part[i], "m64n", 4)) in->target = atoi(part[i] + 4);
  read_operands(it, in, rest);
}

#define MOST_LABELS 256
struct label {
  char name[64];
  int place;
};

/* Takes labels and directives off the beginning of a line. @returns null: nothing is left */
static char *instruction_in(char *line, struct label *labels, int *count, int place) {
  for (;;) {
    line += strspn(line, " \t\n");
    char *colon = strchr(line, ':');
    if (*line == '$' && colon) {
      if (*count == MOST_LABELS) end_process("a kernel has too many labels");
      snprintf(labels[*count].name, sizeof labels->name, "%.*s", (int)(colon - line), line);
      labels[(*count)++].place = place;
      line = colon + 1;
    } else
      return *line && *line != '.' ? line : 0;
  }
}

static void read_code(struct reader *it, char *body) {
  for (char *c = body; (c = strstr(c, "//"));)
    while (*c && *c != '\n') *c++ = ' ';
  int next = 0, room = 1;
  for (int i = 0; i < COUNT(BANKS); i++) {
    char declared[8];
    snprintf(declared, sizeof declared, "%s<", BANKS[i]);
    const char *found = strstr(body, declared);
    it->bank[i] = next;
    if (found) next += atoi(strchr(found, '<') + 1);
  }
  it->specials = next;
  it->kernel->registers = next + SPECIALS;
  for (const char *c = body; *c; c++) room += *c == ';';
  it->kernel->code = calloc(room, sizeof *it->kernel->code);
  struct label *labels = calloc(MOST_LABELS, sizeof *labels);
  int label_count = 0;
  char *save;
  for (char *line = strtok_r(body, ";", &save); line; line = strtok_r(0, ";", &save)) {
    char *text = instruction_in(line, labels, &label_count, it->kernel->count);
    if (text) read_instruction(it, &it->kernel->code[it->kernel->count++], text);
  }
  for (int i = 0; i < it->kernel->count; i++)
    for (int l = 0; l < label_count && it->kernel->code[i].kind == BRANCH; l++)
      if (!strcmp(labels[l].name, it->kernel->code[i].text)) it->kernel->code[i].target = labels[l].place;
  free(labels);
}

struct ptx *ptx_parse(const char *whole, const char *name, int code) {
  char entry[160];
  snprintf(entry, sizeof entry, ".entry %s(", name);
  const char *found = strstr(whole, entry);
  if (!found) return 0;
  char *text = strdup(found), *body = strstr(text, "\n{");
  struct reader it = {.kernel = calloc(1, sizeof(struct ptx))};
  for (char *p = strstr(text, ".param"); p && p < body; p = strstr(p + 1, ".param")) it.kernel->bytes[it.kernel->parameters++] = atoi(p + strlen(".param .u")) / 8;
  it.kernel->threads = atoi(strstr(text, ".reqntid") + 8);
  if (code) {
    *strstr(body, "\n}") = 0;
    read_code(&it, body + 2);
  }
  free(text);
  return it.kernel;
}
