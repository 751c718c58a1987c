/* PTX, the text of the learner's own kernels, as instructions that the host executes. */
#ifndef PTX_H
#define PTX_H
#include <stddef.h>
#include <stdint.h>

enum ptx_kind {
  MOV, ADDS, SUBTRACTS, MUL, MAD, FMA, AND, OR, XOR, NOT, NEG, ABS, MAX, MIN, SHL, SHR, BFE, SETP, SELP, CVT, EX2, LG2, SQRT, RSQRT, RCP, DIV, REM,
  LOAD_PARAMETER, LOAD, STORE, BRANCH, RETURN, NOTHING, COPY_ASYNC, LOAD_MATRIX, STORE_MATRIX, MMA, WGMMA, SHUFFLE, REDUCE
};
/* What else decides what an instruction does: a comparison, a part of a product, a space, an order. */
enum ptx_mode { NO_MODE, LT, LE, GT, GE, EQ, NE, LOW, HIGH, WIDE, SHARED, GLOBAL, TRANS, BUTTERFLY, INDEX, LARGEST, SMALLEST };

struct ptx_type {
  char kind; /* s, u, f, b: as in PTX; p: a predicate; h: bfloat16; H: two of them */
  int size;  /* bytes */
};
struct ptx_operand {
  int reg; /* below 0: the number itself */
  uint64_t number;
};
#define MOST_OPERANDS 160
struct instruction {
  enum ptx_kind kind;
  enum ptx_mode mode;
  struct ptx_type type, to; /* the last of its name, and the one before: a conversion's result */
  int guard, negated;       /* the predicate's register, -1: none */
  int target;               /* a branch's instruction, a parameter's number, or the columns of a wgmma */
  int count;
  struct ptx_operand operand[MOST_OPERANDS];
  int list[4];              /* lengths of its lists of operands, in their order */
  int64_t offset[2];        /* of its addresses */
  const char *text;
};
struct ptx {
  struct instruction *code;
  int count, threads, registers;
  int parameters;
  unsigned char bytes[64]; /* of each parameter */
};

/* The registers after a kernel's own. */
enum special { TID_X, TID_Y, TID_Z, CTAID_X, CTAID_Y, CTAID_Z, LANE, NTID_X, IGNORED, SPECIALS };

/* Reads a kernel's parameters and, with `code`, its instructions. @returns null: the text has no such kernel */
struct ptx *ptx_parse(const char *text, const char *name, int code);
/* Executes one block of threads. @param shared bytes of shared memory */
void ptx_block(const struct ptx *kernel, const unsigned block[3], const uint64_t *arguments, size_t shared);
#endif
