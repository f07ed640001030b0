# SPDX-License-Identifier: Apache-2.0
# The tests open the stand-ins themselves, and are plugins to them: their symbols must be exported.
FAKE_NCCL_TESTS := $(basename $(notdir $(wildcard test/unit/test_fake_nccl*.c)))
$(foreach t,$(FAKE_NCCL_TESTS),$(eval UNIT_LIBS_$(t) := -rdynamic -ldl))
$(FAKE_NCCL_TESTS:%=$(BUILD)/unit/%): | fakes
