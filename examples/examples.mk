# SPDX-License-Identifier: Apache-2.0
# decode_server is linked against the stand-in NCCL, which is always there; which libnccl.so.2 it gets at run
# time is the loader's choice (LD_LIBRARY_PATH, ld.so.conf), as for any server.

EXAMPLE_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard examples/*.c))
$(EXAMPLE_OBJ): CPPFLAGS += -isystem $(CUDA_INC) -isystem $(NCCL_INC)
$(EXAMPLE_OBJ): | check-headers

$(BUILD)/examples/decode_server: $(EXAMPLE_OBJ) $(BUILD)/fake/libnccl.so.2
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(EXAMPLE_OBJ) $(BUILD)/fake/libnccl.so.2 -lpthread -ldl

.PHONY: examples
examples: $(BUILD)/examples/decode_server

-include $(EXAMPLE_OBJ:.o=.d)
