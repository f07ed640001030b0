# SPDX-License-Identifier: Apache-2.0
# The tests open the stand-ins themselves, and are plugins to them: their symbols must be exported.
FAKE_NCCL_TESTS := $(basename $(notdir $(wildcard test/unit/test_fake_nccl*.c)))
FAKE_NCCL_LIBS  := $(BUILD)/fake/libcuda.so.1 $(BUILD)/fake/libnccl.so.2 \
                   $(foreach v,2803 21403 21903 22105 22304 22403 22602 22703 23007,$(BUILD)/fake/nccl-$(v)/libnccl.so.2)
$(foreach t,$(FAKE_NCCL_TESTS),$(eval UNIT_LIBS_$(t) := -rdynamic -ldl))
$(FAKE_NCCL_TESTS:%=$(BUILD)/unit/%): | $(FAKE_NCCL_LIBS)
