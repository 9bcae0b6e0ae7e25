# tl_strategy.h -- `make help` prints the list. `make` and `make run` need only a C compiler.
#
# Everything is rebuilt when tl_strategy.h or a shared header changes. Other compilers and flags go to a build
# directory of their own:  make test CC=clang CFLAGS="-O1 -g -fsanitize=address" B=build/asan

B            = build
LIB_CFLAGS   := $(or $(CFLAGS),-O2 -g)
CFLAGS       ?= -O1 -g
# Of test programs; the parts that they are linked with have LIB_CFLAGS: planners at -O2 take a seventh less time than at -O1.
TEST_CFLAGS  = $(CFLAGS)
FUZZ_SECONDS ?= 60
CLANG        = clang
RUNNER       =
VMA          =
PREFIX       = /usr/local
DESTDIR      =

# Bit-identical results need both: no contraction into FMA, and never -ffast-math.
STD      := -std=c99 -ffp-contract=off
# gcc's time for -Wmisleading-indentation grows with the square of a file's lines: half of all that it takes for this header.
# clang, which make check compiles everything with as well, finds the same at once.
WARN     := -Wall -Wextra -Wpedantic -Wno-misleading-indentation
LDLIBS   := -lm -lpthread -ldl

# Each program holds the whole header: what it does not call is left out, which builds it in a tenth of the time. The
# examples say so themselves.
UNUSED   := -DTL_STRATEGY_STATIC=

HEADERS  := tl_strategy.h tl_vk_backend.h $(wildcard examples/*.h tests/support/*.h tests/bench/*.h) tests/support/vk_shim.c
EXAMPLES := $(patsubst examples/%.c,$(B)/%,$(wildcard examples/*.c))
TESTS    := $(patsubst tests/%.c,$(B)/%,$(wildcard tests/test_*.c))
# make test F=revolve, make test CHANGED=1: programs that have no such test are not built.
CHOSEN    = $(if $(F)$(CHANGED),$(patsubst %,$(B)/%,$(shell F='$(F)' CHANGED='$(CHANGED)' bash tests/choose.sh)),$(TESTS))
BENCHES  := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
FUZZERS  := $(patsubst tests/fuzz_%.c,%,$(wildcard tests/fuzz_*.c))

# Test programs are linked with the parts, in which private functions are external. Those that name what is private, or whose
# support does, are compiled with its declarations (run-> is a field of a run, which is private), the others with the public ones.
private := \b(tli|TLI)_|\brun->
private := $(shell grep -lE '$(private)' tests/support/*.h | sed 's|.*/||' | tr '\n' '|')$(private)
INSIDE  := $(shell grep -lE '$(private)' tests/test_*.c | sed 's|tests/\(.*\)\.c|\1|')

inside:
	@echo $(INSIDE)

# Both headers are joined from parts by plain concatenation, in the order of a list.
PARTS    := $(addprefix src/,$(shell awk '{print $$1}' src/ORDER))
VK_PARTS := $(addprefix src/vk/,$(shell awk '{print $$1}' src/vk/ORDER))

# Compute shaders: the file or the folder that holds their words, the folder of their sources, their prefix.
SHADERS  := src/vk/words,shaders,tli_vk_ examples/vk_nn.h,examples/shaders,vk_nn_ \
            examples/vk_image.h,examples/shaders/image,vk_image_ \
            examples/engine_shaders.h,examples/shaders/engine,engine_ tests/support/vk_layers.h,tests/shaders,vk_ \
            tests/bench/bench_vk.c,tests/bench/shaders,bench_ tests/bench/vk_busy.h,tests/bench/shaders/busy,bench_

# Looked up when used, not when read, so that `make deps test` finds what deps has just installed.
CMOCKA_INCLUDES = \#include <stdarg.h>\n\#include <stddef.h>\n\#include <setjmp.h>\n\#include <cmocka.h>\n
HAVE_CMOCKA = $(shell printf '$(CMOCKA_INCLUDES)' | $(CC) $(CFLAGS) -E - >/dev/null 2>&1 && echo yes)

# Programs with vulkan or _vk in their name need Vulkan's headers: empty where these are missing, and VULKAN=no leaves
# such programs out without a word, for machines that have no driver.
VULKAN = $(shell printf '\#include <vulkan/vulkan_core.h>\n' | $(CC) $(CFLAGS) -E - >/dev/null 2>&1 && echo yes)
on_vulkan = $(foreach p,$1,$(if $(findstring vulkan,$(notdir $p))$(findstring _vk,$(notdir $p)),$p))
present = $(if $(filter yes,$(VULKAN)),$1,$(filter-out $(call on_vulkan,$1),$1))
skipped = $(if $(VULKAN)$(if $(call on_vulkan,$1),,none),:,echo "SKIPPED $(notdir $(call on_vulkan,$1)): no \
    <vulkan/vulkan_core.h> (Debian: libvulkan-dev)"; [ "$${STRICT:-0}" != 1 ])
build = $(if $(call present,$@),$1,@:)

.PHONY: all header seen inside FORCE examples tests lib install run run-quantize run-vulkan run-device run-rows run-parallel run-mpi test bench fuzz soak \
        shaders mutate coverage map size api check deps format help clean cmocka
.DELETE_ON_ERROR:

all: examples
	@$(if $(HAVE_CMOCKA),$(MAKE) --no-print-directory tests,echo "SKIPPED tests: cmocka not found, see make deps")

examples: $(EXAMPLES)
	@$(call skipped,$^)
tests: $(TESTS)
	@$(call skipped,$^)

# A header that is what its parts say stays untouched, so nothing is built again for it. NUMBERED=1: compilers and
# debuggers name lines of the parts; such a header is for development, check refuses it.
hash := \#
numbered = awk 'FNR == 1 {printf "$(hash)line 1 \"%s\"\n", FILENAME} {print}'
parts = $(if $(NUMBERED),$(numbered),cat) $(filter src/%.c src/%.h,$^)
join = $(parts) > $@.joined && if cmp -s $@ $@.joined; then rm $@.joined; else mv $@.joined $@; fi
header: tl_strategy.h tl_vk_backend.h
tl_strategy.h: $(PARTS) src/ORDER $(if $(NUMBERED),FORCE)
	@$(join)
tl_vk_backend.h: $(VK_PARTS) src/vk/ORDER $(if $(NUMBERED),FORCE)
	@$(join)
FORCE:

# For language servers: each part is read with the declarations of the parts above it.
compile_commands.json: src/ORDER src/vk/ORDER
	@bash tests/compile_commands.sh > $@

# LINKED=1: with the parts, which takes seconds where the whole header takes half a minute each; for development and CI, where
# step commands builds them as they say themselves. Those on Vulkan set options of the implementation.
$(EXAMPLES): $(B)/%: examples/%.c $(HEADERS) $(if $(LINKED),| $(B)/parts/libtl_strategy.so)
	@mkdir -p $(@D)
	$(call build,$(CC) $(as_example))
as_example = -O3 $(STD) $(WARN) $(WERROR) $(if $(is_linked),$(sees_public)) -o $@ $< $(if $(is_linked),$(linked_with)) $(LDLIBS)

# -- parts, compiled one by one --
#
# Each part is a translation unit: its own text with external functions, after the declarations of the parts above it. Both are
# made of the part by tests/parts.awk. What a part defines and leaves to others is no waste here. Declarations that are what they were stay untouched, so a change of a body compiles one
# part, and a change of a declaration those below it that are compiled with it.
#
#     src/06_remat/pool.c --+--> build/parts/06_remat/pool.c        --> $(B)/parts/06_remat/pool.o --> $(B)/parts/libtl_strategy.so
#                           +--> build/parts/06_remat/pool.c.seen   for parts below it and for tests
G           := build/parts
part_names  := $(shell awk '{print $$1}' src/ORDER) $(shell awk '{print "vk/" $$1}' src/vk/ORDER)
SEEN        := $(part_names:%=$(G)/%.seen)
objects      = $(patsubst %.c,$(B)/parts/%.o,$(filter %.c,$1))
CORE_PARTS  := $(call objects,$(filter-out vk/%,$(part_names)))
VK_OBJECTS  := $(call objects,$(filter vk/%,$(part_names)))
PART_FLAGS  := -Wno-unused-const-variable -fPIC -fno-semantic-interposition -I$(G)/public -I. -MMD -MP

.PRECIOUS: $(G)/%.made $(G)/%.c
$(G)/%.made: src/% tests/parts.awk
	@mkdir -p $(@D)
	@awk -v declarations=1 -f tests/parts.awk $< > $(G)/$*.new && \
	    if cmp -s $(G)/$*.new $(G)/$*.seen; then rm $(G)/$*.new; else mv $(G)/$*.new $(G)/$*.seen; fi && touch $@
$(SEEN): %.seen: %.made
	@:
$(G)/%.c: src/%.c tests/parts.awk | $(G)/lists
	@mkdir -p $(@D)
	@{ echo '#include "$(G)/above/$*.c.h"' && awk -v part=$< -f tests/parts.awk $<; } > $@

seen: $(SEEN)
# Lists of declarations: those above each part, and those that tests see.
$(G)/lists: src/ORDER src/vk/ORDER tests/part_lists.sh
	@bash tests/part_lists.sh $(G) && touch $@

$(CORE_PARTS): $(B)/parts/%.o: $(G)/%.c | $(SEEN)
	@mkdir -p $(@D)
	@$(CC) $(LIB_CFLAGS) $(STD) $(WARN) $(WERROR) $(PART_FLAGS) -DTL_STRATEGY_IMPLEMENTATION -c -o $@ $<
$(VK_OBJECTS): $(B)/parts/%.o: $(G)/%.c | $(SEEN)
	@mkdir -p $(@D)
	@$(CC) $(LIB_CFLAGS) $(STD) $(WARN) $(WERROR) $(PART_FLAGS) -DTL_VK_BACKEND_IMPLEMENTATION -c -o $@ $<
$(B)/parts/libtl_strategy.so: $(CORE_PARTS)
	@$(CC) $(LIB_CFLAGS) -shared $(LDFLAGS) -o $@.new $^ -lm -lpthread && mv $@.new $@
	@echo "$@: $(words $^) parts"
$(B)/parts/libtl_vk_backend.so: $(VK_OBJECTS)
	@$(CC) $(LIB_CFLAGS) -shared $(LDFLAGS) -o $@.new $^ -ldl && mv $@.new $@
	@echo "$@: $(words $^) parts"

# A test that sets macros for the system's headers sets them before the declarations, too: they are given to the compiler. What
# it reads of the joined headers is nothing, so a part that changes does not compile it again. Programs find the parts beside
# them when they start, so they are not linked again either.
system_macros = $$(sed -n 's/^\#define \(_[A-Z_]*\) *\([0-9L]*\).*/-D\1=\2/p' $<)
sees          = $(if $(filter $*,$(INSIDE)),private,public)
is_vulkan     = $(findstring _vk,$*)$(findstring vulkan,$*)
is_linked     = $(if $(is_vulkan),,$(LINKED))
sees_public   = $(system_macros) -include $(G)/public/tl_strategy.h $(if $(is_vulkan),-include $(G)/public/tl_vk_backend.h) -I$(G)/public -I.
# JOINED=1: with the header as users have it, in which private functions are static; for programs that name none.
library       = $(if $(JOINED),,/parts)
linked_with   = -L$(B)$(library) -Wl,-rpath,'$(abspath $(B)$(library))' $(if $(is_vulkan),-ltl_vk_backend) -ltl_strategy
$(TESTS): $(B)/%: tests/%.c | cmocka $(SEEN) $(G)/lists $(B)$(library)/libtl_strategy.so
	@mkdir -p $(@D)
	@$(call build,$(CC) $(TEST_CFLAGS) $(STD) $(WARN) $(WERROR) -MMD -MP -MF $@.d $(system_macros) -include $(G)/$(sees)/tl_strategy.h \
	    $(if $(is_vulkan),-include $(G)/$(sees)/tl_vk_backend.h) -I$(G)/public -I. -Iexamples -o $@ $< $(filter %.o,$^) $(linked_with) $(LDFLAGS) \
	    -lcmocka $(LDLIBS) && sed -i 's|[^ ]*\.\./tl_[a-z_]*\.h:*||g' $@.d)
$(call on_vulkan,$(TESTS)): | $(B)/parts/libtl_vk_backend.so

# What compilers without builtins get of [1] is tested by this program, the builtins by all others.
no_builtins := $(patsubst $(B)/parts/%,$(B)/parts/no_builtins/%,$(filter $(B)/parts/01_core/%,$(CORE_PARTS)))
$(B)/test_1_core: $(no_builtins)
$(no_builtins): $(B)/parts/no_builtins/%.o: $(G)/%.c | $(SEEN)
	@mkdir -p $(@D)
	@$(CC) $(LIB_CFLAGS) $(STD) $(WARN) $(WERROR) $(PART_FLAGS) -DTLI_NO_BUILTINS -DTL_STRATEGY_IMPLEMENTATION -c -o $@ $<
# Builds of other options beside that one, each private to its file.
$(B)/test_12_tables: $(B)/parts/tables_run.o $(B)/parts/small_run.o
$(B)/test_1_core $(B)/test_12_tables: override TEST_CFLAGS = $(CFLAGS)   # as what they are linked with
$(B)/parts/%_run.o: tests/support/%_run.c tests/support/table_run.h tests/support/mixer.h tl_strategy.h | cmocka
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(STD) $(WARN) $(WERROR) -c -o $@ $<

-include $(patsubst %.o,%.d,$(wildcard $(CORE_PARTS) $(VK_OBJECTS) $(no_builtins))) $(wildcard $(TESTS:%=%.d))

$(BENCHES): $(B)/bench/%: tests/bench/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(call build,$(CC) -O3 $(STD) $(WARN) $(WERROR) $(UNUSED) -Iexamples -o $@ $< $(LDLIBS))

# The Vulkan Memory Allocator beside the backend, where VMA=<path of a clone> says where it is.
VMA_FLAGS := $(CFLAGS) -std=c++17 -Wall -Wextra -isystem $(VMA)/include
$(B)/test_vk_vma: tests/vma/test_vma.c tests/vma/vma_hooks.cpp $(HEADERS) | cmocka
	@mkdir -p $(@D)
	$(CXX) $(VMA_FLAGS) $(WERROR) -c -o $@.o tests/vma/vma_hooks.cpp
	$(CC) $(CFLAGS) $(STD) $(WARN) $(WERROR) -o $@ $< $@.o $(LDFLAGS) -lcmocka -lstdc++ $(LDLIBS)
$(B)/bench/vma_virtual.so: tests/vma/vma_virtual.cpp
	@mkdir -p $(@D)
	$(CXX) $(VMA_FLAGS) -O3 $(WERROR) -shared -fPIC -o $@ $<

# The implementation as a library, for those who do not compile it themselves. Before version 1.0.0 each minor version
# has an interface of its own, and so a soname of its own.
part_of = $(shell sed -n 's/^\#define TL_VERSION_$1 \([0-9]*\).*/\1/p' tl_strategy.h)
VERSION = $(call part_of,MAJOR).$(call part_of,MINOR).$(call part_of,PATCH)
SONAME  = libtl_strategy.so.$(if $(filter 0,$(call part_of,MAJOR)),0.$(call part_of,MINOR),$(call part_of,MAJOR))
lib: $(B)/libtl_strategy.so $(B)/libtl_strategy.a $(B)/tl_strategy.pc

$(B)/tl_strategy.o: tl_strategy.h
	@mkdir -p $(@D)
	$(CC) $(LIB_CFLAGS) $(STD) $(WARN) $(WERROR) -fPIC -DTL_STRATEGY_IMPLEMENTATION -x c -c -o $@ $<
$(B)/libtl_strategy.a: $(B)/tl_strategy.o
	rm -f $@
	$(AR) rcs $@ $<
$(B)/libtl_strategy.so: $(B)/tl_strategy.o
	$(CC) $(CFLAGS) -shared -Wl,-soname,$(SONAME) $(LDFLAGS) -o $@.$(VERSION) $< -lm -lpthread
	ln -sf $(@F).$(VERSION) $(B)/$(SONAME)
	ln -sf $(SONAME) $@
$(B)/tl_strategy.pc: tl_strategy.h FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' '' 'Name: tl_strategy' \
	    'Description: Train and run neural networks inside a fixed number of bytes' 'Version: $(VERSION)' \
	    'License: MIT OR Unlicense' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -ltl_strategy' \
	    'Libs.private: -lm -lpthread' > $@

install: lib
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,include lib/pkgconfig share/doc/tl_strategy)
	install -m 644 tl_strategy.h tl_vk_backend.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(B)/libtl_strategy.a $(B)/libtl_strategy.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib
	cp -P $(B)/$(SONAME) $(B)/libtl_strategy.so $(DESTDIR)$(PREFIX)/lib
	install -m 644 $(B)/tl_strategy.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 LICENSE README.md $(DESTDIR)$(PREFIX)/share/doc/tl_strategy

cmocka: | $(filter deps,$(MAKECMDGOALS))
	@$(if $(HAVE_CMOCKA),:,echo "tests need cmocka: run make deps (Debian: libcmocka-dev)" >&2; exit 1)

run: $(B)/01_train_text
	$(RUNNER) ./$<

run-quantize: $(B)/05_quantize
	$(RUNNER) ./$<

# Ranks that are threads, and ranks that are processes of Open MPI: RANKS=2 ARGS=--quick. As root, too, and on one machine
# with fewer processors than ranks. After Ctrl-C mpirun leaves them a minute, for the step under way and the table.
RANKS  = 2
ARGS   =
MPIRUN = OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --mca btl self,vader \
         --mca odls_base_sigkill_timeout 60
no_mpi = echo "SKIPPED $@: no mpicc (Debian: openmpi-bin libopenmpi-dev)"; [ "$${STRICT:-0}" != 1 ]
has_mpi = $(shell command -v mpicc)

run-parallel: $(B)/17_parallel
	$(RUNNER) ./$< $(ARGS)

run-mpi: $(B)/17_mpi
	@$(if $(has_mpi),$(MPIRUN) -n $(RANKS) ./$< $(ARGS),:)

$(B)/17_mpi: examples/17_parallel.c $(HEADERS) $(if $(LINKED),| $(B)/parts/libtl_strategy.so)
	@mkdir -p $(@D)
	@$(if $(has_mpi),OMPI_CC='$(CC)' mpicc -DWITH_MPI $(as_example),$(no_mpi))

# On a Cortex-M4 that QEMU simulates: training, and the inference of a network in int8.
run-device: $(B)/tl_plan
	@B='$(B)' bash examples/04_device/run.sh
	@B='$(B)' bash examples/05_device/run.sh

# A forward there, with and without regions of rows.
run-rows: $(B)/tl_plan $(B)/09_rows
	@B='$(B)' bash examples/09_device/run.sh

# Importers beside ONNX Runtime and TFLM: packages of PyPI, in a Python of its own. ARGS=--figures: the tables of FIGURES.md.
TINY = build/tiny/bin/python
$(TINY): tests/tiny/packages.txt
	python3 -m venv build/tiny
	build/tiny/bin/pip install -q -r $<
	@touch $@
.PHONY: tiny-check
tiny-check: $(TINY) $(B)/tl_plan $(B)/tl_pack $(B)/parts/libtl_strategy.so
	@B='$(B)' $(TINY) tests/tiny/check.py $(ARGS)

run-vulkan: $(B)/02_vulkan_train
	@$(call skipped,$^)
	$(call build,$(RUNNER) ./$<)

test: $(CHOSEN) $(if $(VMA),$(B)/test_vk_vma)
	@$(call skipped,$^)
	@$(if $(VMA)$(filter no,$(VULKAN)),:,echo "SKIPPED vma: set VMA=<path of a clone>")
	@F='$(F)' RUNNER='$(RUNNER)' tests/run.sh $(call present,$^)

bench: $(BENCHES) $(if $(VMA),$(B)/bench/vma_virtual.so)
	@$(call skipped,$(BENCHES))
	@for b in $(call present,$(BENCHES)); do \
	    echo "== $$b"; VMA_VIRTUAL='$(filter %.so,$^)' $$b || exit 1; \
	done

# Put the words of compute shaders into the files that hold them;  make shaders MODE=check  compares only.
MODE = write
shaders:
	@for s in $(SHADERS); do \
	    IFS=,; set -- $$s; unset IFS; \
	    [ ! -e "$$1" ] || tests/shaders.sh $(MODE) "$$@" || exit 1; \
	done

# FUZZ_END: when one ends; CI takes a number of runs and a seed, so that it does the same each time.
FUZZ_END = -max_total_time=$(FUZZ_SECONDS)
fuzz: $(FUZZERS:%=fuzz-%)

fuzz-%: $(B)/fuzz/%
	@mkdir -p $(B)/fuzz/corpus/$* tests/corpus/fuzz_$*
	$< $(FUZZ_END) -timeout=60 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
	    -artifact_prefix=$(B)/fuzz/$*- $(B)/fuzz/corpus/$* tests/corpus/fuzz_$*

# Linked with parts that tell what is entered. FUZZ_B: where these are; CI takes those of its sanitizers.
FUZZ_B     = $(B)/fuzz
FUZZ_FLAGS = -O1 -g1 -DTLI_INVARIANTS -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow \
             -fno-sanitize-recover=all
.PHONY: fuzz-parts
fuzz-parts:
	@$(MAKE) --no-print-directory $(FUZZ_B)/parts/libtl_strategy.so B=$(FUZZ_B) CC=$(CLANG) CFLAGS='$(FUZZ_FLAGS)'
.PRECIOUS: $(B)/fuzz/%
$(B)/fuzz/%: tests/fuzz_%.c fuzz-parts
	@mkdir -p $(@D)
	$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer -rdynamic $(STD) $(WARN) $(WERROR) -include $(G)/private/tl_strategy.h -I$(G)/public -I. \
	    -o $@ $< -L$(FUZZ_B)/parts -Wl,-rpath,'$(abspath $(FUZZ_B)/parts)' -ltl_strategy $(LDLIBS)

# Walks SOAK times as long.
SOAK = 5
soak: $(B)/tl_plan $(B)/tl_pack
	SOAK=$(SOAK) TIMEOUT=7200 $(MAKE) test
	python3 tests/tl_plan.py $(B)/tl_plan
	SOAK=$(SOAK) python3 tests/replay_ranks.py $(B)/tl_plan
	python3 tests/tl_pack.py $(B)/tl_pack
	python3 tests/reference.py $(B)/tl_plan
	python3 tests/differential_plan.py 10000
	python3 tests/differential_once.py 10000
	python3 tests/replay_states.py 100000
	$(MAKE) fuzz FUZZ_SECONDS=600
	@grep -v '^\[' $(B)/test_6_properties.log

mutate:
	@if [ -f tests/mutate.sh ]; then bash tests/mutate.sh; else echo "SKIPPED mutate: tests/mutate.sh is missing"; fi

coverage:
	@bash tests/coverage.sh

# Which programs are the tests of a part: CHANGED=1 looks there.
map:
	@bash tests/coverage.sh --map

size:
	@bash tests/size.sh --table

# Functions, structs, enums and options of both headers with their comments, for bindings and tables: build/api.json.
api:
	@python3 tests/api.py

check:
	@bash tests/check.sh

deps:
	@bash tests/deps.sh

format:
	@clang-format --dry-run $(wildcard *.h examples/*.[ch] tests/*.c tests/support/*.[ch] tests/build/*.[ch] tests/bench/*.[ch]) || true

clean:
	rm -rf $(B)

help:
	@echo 'make             build examples and tests         make coverage  lines of the header that no test runs'
	@echo 'make run         train, show the table            make size      code size, per symbol and option'
	@echo 'make run-vulkan  the same on a Vulkan device      make shaders   compile *.comp into the headers'
	@echo 'make run-device  train on a simulated Cortex-M4: generated code, by hand, executor; infer in int8; tables of bytes'
	@echo 'make run-rows    MobileNetV2 there in line buffers: RAM and instructions with and without regions of rows'
	@echo 'make run-quantize  quantise two networks within loss budgets, run them with integer kernels'
	@echo 'make tiny-check  importers of ONNX and TFLite beside ONNX Runtime and TFLM: installs packages of PyPI in build/tiny'
	@echo 'make run-parallel  train on ranks that are threads; make run-mpi  RANKS=2 ARGS=: that are processes of MPI'
	@echo 'make test        all tests; F=name: those with it  make mutate    break the header: tests must fail'
	@echo '                 in their name, CHANGED=1: those of what differs from the last commit'
	@echo 'make bench       tables of times, as ratios       make check     everything: compilers, languages, options,'
	@echo 'make fuzz        each parser, FUZZ_SECONDS=60                    sanitizers, 32-bit, big endian, examples'
	@echo 'make soak        walks SOAK=5 times as long       make deps      install what check needs (Debian)'
	@echo 'make format      advice from clang-format         make help      this list; make clean removes build/'
	@echo 'make lib         shared and static library        make install   PREFIX=/usr/local DESTDIR='
	@echo 'make header      join src/ into both headers      make compile_commands.json   for language servers'
	@echo 'make api         build/api.json: functions, structs, enums, options with their comments'
	@echo 'VMA=<clone of the Vulkan Memory Allocator>: test and bench run beside it, too'
