# tl_strategy.h -- `make help` prints the list. `make` and `make run` need only a C compiler.
#
# Everything is rebuilt when tl_strategy.h or a shared header changes. Other compilers and flags go to a build
# directory of their own:  make test CC=clang CFLAGS="-O1 -g -fsanitize=address" B=build/asan

B            = build
CFLAGS       ?= -O2 -g
FUZZ_SECONDS ?= 60
CLANG        = clang
RUNNER       =

# Bit-identical results need both: no contraction into FMA, and never -ffast-math.
STD      := -std=c99 -ffp-contract=off
WARN     := -Wall -Wextra -Wpedantic
LDLIBS   := -lm -lpthread -ldl

HEADERS  := tl_strategy.h $(wildcard examples/*.h tests/*.h)
EXAMPLES := $(patsubst examples/%.c,$(B)/%,$(wildcard examples/*.c))
TESTS    := $(patsubst tests/%.c,$(B)/%,$(wildcard tests/test_*.c))
BENCHES  := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
FUZZERS  := $(patsubst tests/fuzz_%.c,%,$(wildcard tests/fuzz_*.c))

# Looked up when used, not when read, so that `make deps test` finds what deps has just installed.
CMOCKA_INCLUDES = \#include <stdarg.h>\n\#include <stddef.h>\n\#include <setjmp.h>\n\#include <cmocka.h>\n
HAVE_CMOCKA = $(shell printf '$(CMOCKA_INCLUDES)' | $(CC) $(CFLAGS) -E - >/dev/null 2>&1 && echo yes)

.PHONY: all examples tests run test bench fuzz soak mutate coverage size check deps format help clean cmocka
.DELETE_ON_ERROR:

all: examples
	@$(if $(HAVE_CMOCKA),$(MAKE) --no-print-directory tests,echo "SKIPPED tests: cmocka not found, see make deps")

examples: $(EXAMPLES)
tests: $(TESTS)

$(EXAMPLES): $(B)/%: examples/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -O3 $(STD) $(WARN) $(WERROR) -o $@ $< $(LDLIBS)

$(TESTS): $(B)/%: tests/%.c $(HEADERS) | cmocka
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(STD) $(WARN) $(WERROR) -Iexamples -o $@ $< $(LDFLAGS) -lcmocka $(LDLIBS)

$(BENCHES): $(B)/bench/%: tests/bench/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -O3 $(STD) $(WARN) $(WERROR) -Iexamples -o $@ $< $(LDLIBS)

cmocka: | $(filter deps,$(MAKECMDGOALS))
	@$(if $(HAVE_CMOCKA),:,echo "tests need cmocka: run make deps (Debian: libcmocka-dev)" >&2; exit 1)

run: $(B)/01_train_text
	$(RUNNER) ./$<

test: $(TESTS)
	@F='$(F)' RUNNER='$(RUNNER)' tests/run.sh $(TESTS)

bench: $(BENCHES)
	@for b in $(BENCHES); do echo "== $$b"; $$b || exit 1; done

fuzz: $(FUZZERS:%=fuzz-%)

fuzz-%: $(B)/fuzz/%
	@mkdir -p $(B)/fuzz/corpus/$* tests/corpus/fuzz_$*
	$< -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
	    -artifact_prefix=$(B)/fuzz/$*- $(B)/fuzz/corpus/$* tests/corpus/fuzz_$*

.PRECIOUS: $(B)/fuzz/%
$(B)/fuzz/%: tests/fuzz_%.c $(HEADERS)
	@mkdir -p $(@D)
	$(CLANG) -g -O1 $(STD) $(WARN) $(WERROR) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	    -o $@ $< $(LDLIBS)

soak:
	SOAK=1 TIMEOUT=7200 $(MAKE) test
	$(MAKE) fuzz FUZZ_SECONDS=600

mutate:
	@if [ -f tests/mutate.sh ]; then bash tests/mutate.sh; else echo "SKIPPED mutate: tests/mutate.sh is missing"; fi

coverage:
	@bash tests/coverage.sh

size:
	@bash tests/size.sh

check:
	@bash tests/check.sh

deps:
	@bash tests/deps.sh

format:
	@clang-format --dry-run $(wildcard *.h examples/*.[ch] tests/*.[ch] tests/bench/*.c) || true

clean:
	rm -rf $(B)

help:
	@echo 'make           build examples and tests         make coverage  lines of the header that no test runs'
	@echo 'make run       train, show the table            make size      Cortex-M4 code size, per symbol'
	@echo 'make test      all tests, F=name filters        make mutate    break the header on purpose: tests must fail'
	@echo 'make bench     tables of times, as ratios       make check     everything: compilers, languages, sanitizers,'
	@echo 'make fuzz      each parser, FUZZ_SECONDS=60                    options, 32-bit, big endian, README, examples'
	@echo 'make soak      longer sweeps and fuzzing        make deps      install what check needs (Debian)'
	@echo 'make format    advice from clang-format         make help      this list; make clean removes build/'
