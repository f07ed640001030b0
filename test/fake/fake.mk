# SPDX-License-Identifier: Apache-2.0
# The stand-ins for machines without a GPU: a simulated CUDA driver and a simulated NCCL.
-include test/fake/cuda.mk
-include test/fake/nccl.mk

.PHONY: fake
fake: $(BUILD)/fake/libcuda.so.1 $(BUILD)/fake/libnccl.so.2
