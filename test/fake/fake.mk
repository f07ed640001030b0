# SPDX-License-Identifier: Apache-2.0
# The stand-ins for machines without a GPU: a simulated CUDA driver and a simulated NCCL.
-include test/fake/cuda.mk
-include test/fake/nccl.mk

.PHONY: fake
fake: $(BUILD)/fake/libcuda.so.1 $(BUILD)/fake/libnccl.so.2

# All versions of NCCL that tests ask for by name.
.PHONY: fakes
fakes: fake $(foreach v,2803 21403 21903 22105 22304 22403 22602 22703 23007,$(BUILD)/fake/nccl-$(v)/libnccl.so.2)
