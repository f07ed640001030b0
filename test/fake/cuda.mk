# SPDX-License-Identifier: Apache-2.0
# The simulated CUDA driver: build/fake/libcuda.so.1. Needs cuda.h, libc and pthread alone.
FAKE_CUDA_SRC := $(sort $(wildcard test/fake/cuda_*.c test/fake/ptx_*.c))
FAKE_CUDA_OBJ := $(FAKE_CUDA_SRC:%.c=$(BUILD)/fake/obj/%.o)

$(FAKE_CUDA_OBJ): $(BUILD)/fake/obj/%.o: %.c | check-headers
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -isystem $(CUDA_INC) -fPIC -fvisibility=hidden -pthread -MMD -MP -c -o $@ $<

$(BUILD)/fake/libcuda.so.1: $(FAKE_CUDA_OBJ)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -pthread -Wl,-soname,libcuda.so.1 -o $@ $(FAKE_CUDA_OBJ)

-include $(FAKE_CUDA_OBJ:.o=.d)
