# SPDX-License-Identifier: Apache-2.0
#
# The simulated NCCL: build/fake/libnccl.so.2 is 2.28.9, build/fake/nccl-CODE/libnccl.so.2 is the version
# with that code (2803 for 2.8.3, 21403 for 2.14.3, 23007 for 2.30.7).

FAKE_NCCL_SRC := $(sort $(wildcard test/fake/nccl_*.c))
FAKE_NCCL_HDR := $(wildcard test/fake/nccl_*.h) test/fake/fakecuda.h test/fake/nccl.map
FAKE_NCCL     := $(BUILD)/fake/libnccl.so.2



# $(1) = version code. One compiler run for the whole library: it is small, and there are many versions.
# Not -Bsymbolic, and lazy binding as NCCL has it: calls between public functions can be interposed.
fake_nccl = $(CC) $(ALL_CFLAGS) $(CPPFLAGS) -isystem $(CUDA_INC) -DFAKE_NCCL_VERSION=$(1) -fPIC -fvisibility=hidden \
  $(LDFLAGS) -shared -Wl,-soname,libnccl.so.2 -Wl,-z,defs -Wl,--version-script=test/fake/nccl.map \
  -o $@ $(FAKE_NCCL_SRC) -lpthread -lm -ldl

$(FAKE_NCCL): $(FAKE_NCCL_SRC) $(FAKE_NCCL_HDR) | check-headers
	@mkdir -p $(@D)
	$(call fake_nccl,22809)

$(BUILD)/fake/nccl-%/libnccl.so.2: $(FAKE_NCCL_SRC) $(FAKE_NCCL_HDR) | check-headers
	@mkdir -p $(@D)
	$(call fake_nccl,$*)
