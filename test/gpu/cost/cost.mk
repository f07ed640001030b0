# SPDX-License-Identifier: Apache-2.0
# Programs that test/gpu/{cost,settings,eight}.sh run: linked as a server is (DT_NEEDED), against the
# stand-ins; which libcuda.so.1 and libnccl.so.2 they get is the loader's choice.
COST_SRC := $(sort $(wildcard test/gpu/cost/*.c))
COST_OBJ := $(COST_SRC:%.c=$(BUILD)/obj/%.o)
COST_LIB := $(BUILD)/fake/libcuda.so.1 $(BUILD)/fake/libnccl.so.2
$(COST_OBJ): CPPFLAGS += -isystem $(CUDA_INC) -isystem $(NCCL_INC)

$(BUILD)/cost/load: $(BUILD)/obj/test/gpu/cost/load.o $(BUILD)/obj/test/gpu/cost/load_rank.o \
  $(BUILD)/obj/examples/driver.o $(COST_LIB)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread -ldl

$(BUILD)/cost/births: $(BUILD)/obj/test/gpu/cost/births.o $(COST_LIB)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread

$(BUILD)/cost/stuck: $(BUILD)/obj/test/gpu/cost/stuck.o $(COST_LIB)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread

# CUPTI's header comes with the CUDA toolkit, not with every cuda.h.
COST_CUPTI := $(if $(wildcard $(CUDA_INC)/cupti.h),$(BUILD)/cost/libcupti_activity.so)
$(BUILD)/cost/libcupti_activity.so: test/gpu/cost/cupti_activity.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -isystem $(CUDA_INC) $(LDFLAGS) -fPIC -shared -fvisibility=hidden -o $@ $< -lpthread -ldl

.PHONY: cost
cost: $(BUILD)/cost/load $(BUILD)/cost/births $(BUILD)/cost/stuck $(COST_CUPTI)
all: cost

-include $(COST_OBJ:.o=.d)
