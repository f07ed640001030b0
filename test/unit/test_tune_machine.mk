# SPDX-License-Identifier: Apache-2.0
# A libnvidia-ml.so.1 of our own, found under its name since it is loaded first.
NVML_STUB := $(BUILD)/unit/nvml/libnvidia-ml.so.1

$(NVML_STUB): test/unit/nvml_stub.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -fPIC -shared -Wl,-soname,libnvidia-ml.so.1 -o $@ $<

$(BUILD)/unit/test_tune_machine: | $(NVML_STUB)
UNIT_FLAGS_test_tune_machine := -DNVML_STUB='"$(abspath $(NVML_STUB))"'
