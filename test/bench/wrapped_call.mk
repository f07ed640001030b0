# SPDX-License-Identifier: Apache-2.0
$(BUILD)/bench/stub/libnccl.so.2: test/bench/stub/nccl.c | check-headers
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(CUDA_INC:%=-isystem %) $(NCCL_INC:%=-isystem %) -fPIC -shared -Wl,-soname,libnccl.so.2 -o $@ $<

$(BUILD)/bench/wrapped_call: | $(BUILD)/bench/stub/libnccl.so.2
UNIT_OBJ_wrapped_call  := $(BUILD)/obj/examples/driver.o
UNIT_LIBS_wrapped_call := -ldl
