// Two files: this one has the implementation, only_header.c only the declarations.
// flags: tests/build/only_header.c
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"
#include "../../tl_strategy.h"

int only_header(void);
int main(void) { return !only_header(); }
