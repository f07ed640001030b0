# SPDX-License-Identifier: Apache-2.0
# The targets run, test, test-gpu, soak, fuzz and bench; how unit tests and benchmarks are built.
#
# A unit test is test/unit/test_NAME.c with cmocka; dropping the file in is all. It is linked with the
# command's rooms (libcli.a), with the shared object's (libshim.a) when it includes one of their headers,
# and with the stand-ins when it includes cuda.h or nccl.h. What else it needs stands in
# test/unit/test_NAME.mk:
#   UNIT_FLAGS_test_NAME := compiler flags
#   UNIT_OBJ_test_NAME   := objects and archives before libcli.a
#   UNIT_LIBS_test_NAME  := libraries behind it

UNIT_SRC  := $(sort $(wildcard test/unit/test_*.c))
BENCH_SRC := $(sort $(wildcard test/bench/*.c))
UNIT_BIN  := $(UNIT_SRC:test/unit/%.c=$(BUILD)/unit/%)
BENCH_BIN := $(BENCH_SRC:test/bench/%.c=$(BUILD)/bench/%)
UNIT_ALL  := $(UNIT_SRC) $(BENCH_SRC)
UNIT_OBJ  := $(UNIT_ALL:%.c=$(BUILD)/obj/%.o)

UNIT_WITH_SHIM := $(if $(UNIT_ALL),$(shell grep -lE '\#include "shim/(preload|plugin|log/write)/' $(UNIT_ALL)))
UNIT_WITH_CUDA := $(if $(UNIT_ALL),$(shell grep -lE '\#include ([<"]cuda.h[>"]|"test/fake/|"examples/driver.h")' $(UNIT_ALL)))
UNIT_WITH_NCCL := $(if $(UNIT_ALL),$(shell grep -lE '\#include [<"]nccl.h[>"]' $(UNIT_ALL)))

include $(wildcard test/unit/*.mk test/bench/*.mk)

# $(1) = source: the archives and libraries that its own text asks for
unit_objs = $(UNIT_OBJ_$(basename $(notdir $(1)))) $(if $(filter $(1),$(UNIT_WITH_SHIM)),$(BUILD)/libshim.a)
unit_libs = $(UNIT_LIBS_$(basename $(notdir $(1)))) $(if $(filter $(1),$(UNIT_WITH_CUDA)),$(BUILD)/fake/libcuda.so.1) \
              $(if $(filter $(1),$(UNIT_WITH_NCCL)),$(BUILD)/fake/libnccl.so.2)
unit_built = $(filter $(BUILD)/%,$(call unit_libs,$(1)))
UNIT_LINK  = $(CC) $(ALL_CFLAGS) $(LDFLAGS) -pie -Wl,--as-needed,-rpath,$(abspath $(BUILD)/fake) -o $@

$(UNIT_OBJ): CPPFLAGS += $(CUDA_INC:%=-isystem %) $(NCCL_INC:%=-isystem %)

$(BUILD)/libshim.a: $(SHIM_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

# The sanitizers' own start-up calls dlsym, before code with their checks in it can run.
$(BUILD)/pic/shim/preload/dlsym.o: ALL_CFLAGS = $(STD) $(filter-out -fsanitize%,$(OPT)) $(WARN) $(HARDEN) $(CFLAGS)

# $$* and not %: in the second expansion a % inside a function would be the stem, too.
.SECONDEXPANSION:
$(UNIT_BIN): $(BUILD)/unit/%: $(BUILD)/obj/test/unit/%.o $$(call unit_objs,test/unit/$$*.c) \
  $(BUILD)/libcli.a | $$(call unit_built,test/unit/$$*.c)
	@mkdir -p $(@D)
	$(UNIT_LINK) $(filter %.o %.a,$^) $(call unit_libs,test/unit/$*.c) -lcmocka $(CLI_LIBS)

$(BENCH_BIN): $(BUILD)/bench/%: $(BUILD)/obj/test/bench/%.o $$(call unit_objs,test/bench/$$*.c) \
  $(BUILD)/libcli.a | $$(call unit_built,test/bench/$$*.c)
	@mkdir -p $(@D)
	$(UNIT_LINK) $(filter %.o %.a,$^) $(call unit_libs,test/bench/$*.c) $(CLI_LIBS)

define unit_flags
$(BUILD)/obj/test/unit/$(1).o: CFLAGS += $$(UNIT_FLAGS_$(1))
endef
$(foreach u,$(UNIT_SRC:test/unit/%.c=%),$(if $(UNIT_FLAGS_$(u)),$(eval $(call unit_flags,$(u)))))

.PHONY: units benches
units: $(UNIT_BIN)
benches: $(BENCH_BIN)

-include $(UNIT_OBJ:.o=.d)

# ---- what a user types -------------------------------------------------------------------------
# Packages first, then a make of its own: which headers there are is found out when make starts.
SUB = +@env -u LD_PRELOAD PYTHON='$(PYTHON)' BUILD='$(BUILD)' CC='$(CC)' MAKE='$(MAKE)'

run:
	@CC='$(CC)' PYTHON='$(PYTHON)' sh test/deps.sh run
	$(SUB) sh examples/run.sh

test:
	@CC='$(CC)' PYTHON='$(PYTHON)' sh test/deps.sh test
	$(SUB) $(PYTHON) test/run.py cpu

test-gpu:
	$(SUB) $(PYTHON) test/run.py gpu

test-aarch64:
	$(SUB) $(PYTHON) test/run.py aarch64

soak:
	$(SUB) $(PYTHON) test/run.py soak

fuzz:
	$(SUB) $(PYTHON) test/run.py fuzz

bench:
	@CC='$(CC)' PYTHON='$(PYTHON)' sh test/deps.sh run
	$(SUB) $(PYTHON) test/run.py bench

include test/faults/faults.mk
include test/fuzz/fuzz.mk
include test/lint/lint.mk
include test/coverage/coverage.mk
