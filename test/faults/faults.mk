# SPDX-License-Identifier: Apache-2.0
# Failures on purpose: libfaults.so makes one call of the shim's fail; `make test-faults` tries them all.
FAULTS_OBJ := $(BUILD)/faults/faults.o

$(FAULTS_OBJ): test/faults/faults.c | check-deps
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -O2 $(CPPFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<

$(BUILD)/faults/libfaults.so: $(FAULTS_OBJ)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -o $@ $< -ldl

all: $(BUILD)/faults/libfaults.so

.PHONY: test-faults
test-faults:
	@CC='$(CC)' PYTHON='$(PYTHON)' sh test/deps.sh test
	$(SUB) $(PYTHON) test/faults/run.py

-include $(FAULTS_OBJ:.o=.d)
