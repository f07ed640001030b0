# SPDX-License-Identifier: Apache-2.0
# Small programs that call NCCL in one way each; test/e2e runs them under the shim. They are linked as a
# server is (DT_NEEDED libnccl.so.2), against the stand-ins; which library they get is the loader's choice.
CLIENT_SRC := $(sort $(wildcard test/e2e/clients/*.c))
CLIENT_OBJ := $(CLIENT_SRC:%.c=$(BUILD)/obj/%.o)
$(CLIENT_OBJ): CPPFLAGS += -isystem $(CUDA_INC) -isystem $(NCCL_INC)

$(BUILD)/clients/shapes: $(CLIENT_OBJ) $(BUILD)/fake/libcuda.so.1 $(BUILD)/fake/libnccl.so.2
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(CLIENT_OBJ) $(BUILD)/fake/libcuda.so.1 $(BUILD)/fake/libnccl.so.2 -lpthread -ldl

.PHONY: clients
clients: $(BUILD)/clients/shapes
all: clients

-include $(CLIENT_OBJ:.o=.d)

include test/compat/compat.mk
