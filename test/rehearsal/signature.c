/* Names of kernels and types of numbers, as arithmetic.c and movement.c are chosen and written by them. */
#define _GNU_SOURCE
#include "rehearsal.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef char *demangler(const char *mangled, char *to, size_t *room, int *status);

/* libstdc++ is in the process, because ONNX Runtime needs it. */
static char *demangled(const char *mangled) {
  static demangler *demangle;
  if (!demangle) {
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY);
    demangle = library ? (demangler *)dlsym(library, "__cxa_demangle") : 0;
    if (!demangle) end_process("libstdc++.so.6 has no __cxa_demangle");
  }
  int status;
  char *text = demangle(mangled, 0, 0, &status);
  return text ? text : strdup(mangled);
}

static void without(char *text, const char *part) {
  size_t length = strlen(part);
  for (char *at = text; (at = strstr(at, part));) memmove(at, at + length, strlen(at + length) + 1);
}

struct signature signature_of(const char *mangled) {
  char *text = demangled(mangled); /* kept: a kernel's signature lives as long as the process */
  const char *parts[] = {"onnxruntime::", "contrib::", "cuda::", "detail::", "(anonymous namespace)::", "void "};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) without(text, parts[i]);
  struct signature result = {.name = text};
  int depth = 0;
  for (char *at = text; *at; at++) {
    if (*at == '(' && depth == 0) {
      *at = 0;
      break;
    }
    if (*at == '<' && depth++ == 0) {
      *at = 0;
      result.template[result.count++] = at + 1;
    } else if (*at == '>' && --depth == 0) {
      *at = 0;
      break;
    } else if (*at == ',' && depth == 1 && result.count < MOST_TEMPLATE_ARGUMENTS) {
      *at = 0;
      result.template[result.count++] = at + 2;
    }
  }
  return result;
}

int parameters_of(const char *mangled, uint8_t pointers[MOST_PARAMETERS]) {
  char *text = demangled(mangled), *end = text + strlen(text) - 1, *begin = end;
  if (*end != ')') end_process("a kernel's name has no parameters");
  for (int depth = 0; begin >= text; begin--) {
    depth += *begin == ')' ? 1 : *begin == '(' ? -1 : 0;
    if (depth == 0) break;
  }
  int parameters = 0, depth = 0;
  if (end - begin > 1)
    for (char *at = begin + 1; at <= end; at++) {
      if (at == end || (*at == ',' && depth == 0)) {
        if (parameters == MOST_PARAMETERS) end_process("a kernel has too many parameters");
        pointers[parameters++] = at[-1] == '*';
      } else if (strchr("(<[{", *at)) depth++;
      else if (strchr(")>]}", *at)) depth--;
    }
  free(text);
  return parameters;
}

enum type type_of(const char *name) {
  static const struct { const char *name; enum type type; } known[] = {
      {"float", FLOAT}, {"double", DOUBLE}, {"BFloat16", BFLOAT16}, {"__nv_bfloat16", BFLOAT16}, {"__half", FLOAT16}, {"MLFloat16", FLOAT16}, {"bool", BOOL},
      {"signed char", INT8}, {"short", INT16}, {"int", INT32}, {"long", INT64}, {"int4", INT128},
      {"unsigned short", INT16}, {"unsigned int", INT32}, {"unsigned long", INT64}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (name && !strcmp(known[i].name, name)) return known[i].type;
  return UNKNOWN;
}

size_t bytes_of(enum type type) {
  switch (type) {
    case BOOL: case INT8: return 1;
    case BFLOAT16: case FLOAT16: case INT16: return 2;
    case FLOAT: case INT32: return 4;
    case DOUBLE: case INT64: return 8;
    case INT128: return 16;
    default: end_process("a type of numbers is not emulated");
  }
}

double get(enum type type, const void *from, int64_t i) {
  switch (type) {
    case FLOAT: return ((const float *)from)[i];
    case DOUBLE: return ((const double *)from)[i];
    case BOOL: return ((const uint8_t *)from)[i];
    case INT8: return ((const int8_t *)from)[i];
    case INT16: return ((const int16_t *)from)[i];
    case INT32: return ((const int32_t *)from)[i];
    case INT64: return ((const int64_t *)from)[i];
    case FLOAT16: return ((const _Float16 *)from)[i];
    case BFLOAT16: {
      union { uint32_t bits; float value; } wide = {.bits = (uint32_t)((const uint16_t *)from)[i] << 16};
      return wide.value;
    }
    default: end_process("a type of numbers is not emulated");
  }
}

/* The nearest, of two that are equally near the even one; a NaN stays one. */
static uint16_t bfloat16(float value) {
  union { float value; uint32_t bits; } wide = {value};
  if (value != value) return 0x7FFF;
  return (wide.bits + 0x7FFF + (wide.bits >> 16 & 1)) >> 16;
}

void put(enum type type, void *to, int64_t i, double value) {
  switch (type) {
    case FLOAT: ((float *)to)[i] = value; break;
    case DOUBLE: ((double *)to)[i] = value; break;
    case BOOL: ((uint8_t *)to)[i] = value != 0; break;
    case INT8: ((int8_t *)to)[i] = value; break;
    case INT16: ((int16_t *)to)[i] = value; break;
    case INT32: ((int32_t *)to)[i] = value; break;
    case INT64: ((int64_t *)to)[i] = value; break;
    case FLOAT16: ((_Float16 *)to)[i] = value; break;
    case BFLOAT16: ((uint16_t *)to)[i] = bfloat16(value); break;
    default: end_process("a type of numbers is not emulated");
  }
}

void lacks(const char *what) {
  char message[4096];
  char *text = demangled(what);
  snprintf(message, sizeof message, "the arithmetic of %s is not emulated (test/rehearsal/arithmetic.c)", text);
  end_process(message);
}
