# SPDX-License-Identifier: Apache-2.0
# Which libnccl.so.2 decode_server gets at run time is the loader's choice (LD_LIBRARY_PATH, ld.so.conf), as
# for any server; at link time any will do.

LINK_NCCL   := $(firstword $(wildcard $(NCCL_INC)/../lib/libnccl.so.2 $(NCCL_INC)/../lib64/libnccl.so.2))
EXAMPLE_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard examples/*.c))
$(EXAMPLE_OBJ): CPPFLAGS += -isystem $(CUDA_INC) -isystem $(NCCL_INC)

$(BUILD)/examples/decode_server: $(EXAMPLE_OBJ) $(LINK_NCCL)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(EXAMPLE_OBJ) $(LINK_NCCL) -lpthread -ldl

.PHONY: examples
examples: $(BUILD)/examples/decode_server

-include $(EXAMPLE_OBJ:.o=.d)
