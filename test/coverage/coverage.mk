# SPDX-License-Identifier: Apache-2.0
# COVERAGE=1 (test/harness/coverage.py): the lines of shim/ are counted, in every process that holds them.
ifdef COVERAGE
COVERAGE_EXIT := $(BUILD)/coverage/exit.o

$(SHIM_OBJ) $(CLI_OBJ): CFLAGS += --coverage -fprofile-update=atomic
LDFLAGS += --coverage

$(COVERAGE_EXIT): test/coverage/exit.c | check-deps
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fPIE -c -o $@ $<

COVERAGE_ONCE := $(BUILD)/coverage/once.o
$(COVERAGE_ONCE): test/coverage/once.c | check-deps
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fPIC -c -o $@ $<

$(LIBSHIM): $(COVERAGE_ONCE)
$(LIBSHIM): private LDFLAGS += -Wl,--wrap=__gcov_init $(COVERAGE_ONCE)
$(CLI) $(UNIT_BIN): $(COVERAGE_EXIT)
$(CLI) $(UNIT_BIN): private LDFLAGS += -Wl,--wrap=_exit
endif
