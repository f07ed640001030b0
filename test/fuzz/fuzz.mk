# SPDX-License-Identifier: Apache-2.0
# Fuzzers, built by clang with libFuzzer and sanitizers: build/fuzz/fuzz_NAME for each test/fuzz/fuzz_NAME.c.
# FUZZ_SRC_fuzz_NAME: what of shim/ it is made of. `make test` runs each for a few seconds, `make fuzz` for half an hour.
FUZZ_SRC_fuzz_log        := $(wildcard shim/log/read/*.c) shim/base/error.c shim/base/replace.c \
  $(addprefix shim/stats/,hist.c map.c accum.c histfile_load.c histfile_save.c)
FUZZ_SRC_fuzz_profile    := $(wildcard shim/profile/*.c shim/base/*.c)
FUZZ_SRC_fuzz_server_log := $(wildcard shim/prove/doctor/doctor_server*.c) shim/prove/doctor/doctor_list.c shim/show/json.c \
  shim/show/term.c shim/stats/hist.c $(wildcard shim/base/*.c)
FUZZ_SRC_fuzz_workload   := shim/prove/bench/workload.c shim/prove/bench/bench_file.c $(wildcard shim/base/*.c)
FUZZ_SRC_fuzz_cli        := $(wildcard shim/cli/*.c shim/profile/*.c shim/base/*.c) \
  $(addprefix shim/prove/,bench/workload.c bench/bench_file.c ab/metric.c ab/ready.c)
# A log's tables are as large as they say: few call sites keep a run of the fuzzer short.
FUZZ_FLAGS_fuzz_log      := -DHISTFILE_SITES_MAX=4096
# What a verb does once its options are read: linked as it is for all that prints, and replaced by the
# fuzzer's own where it would begin something.
FUZZ_FLAGS_fuzz_cli      := -Dmain=ncclshim_main -Wl,-z,muldefs
FUZZ_LIBS_fuzz_cli       := $(BUILD)/libcli.a

FUZZ_CC  ?= clang
# A float that its integer can't hold is as undefined as the rest, but clang counts it apart.
FUZZ_CHECKS := address,undefined,float-cast-overflow
FUZZ_BIN := $(patsubst test/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))

.SECONDEXPANSION:
$(FUZZ_BIN): $(BUILD)/fuzz/%: test/fuzz/%.c $$(FUZZ_SRC_$$*) $$(FUZZ_LIBS_$$*) $(wildcard shim/*/*.h shim/log/*/*.h include/ncclshim/*.h)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(STD) -O1 -g -fsanitize=fuzzer,$(FUZZ_CHECKS) -fno-sanitize-recover=$(FUZZ_CHECKS) $(CPPFLAGS) \
	  $(FUZZ_FLAGS_$*) -o $@ $(filter %.c %.a,$^) $(CLI_LIBS)

.PHONY: fuzzers
fuzzers: $(FUZZ_BIN)
