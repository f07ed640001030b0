# SPDX-License-Identifier: Apache-2.0
# Clients that reach NCCL in every way that real programs do; test/compat/cells.py runs them.
COMPAT_DIR := $(BUILD)/compat
COMPAT_INC := $(CUDA_INC:%=-isystem %) $(NCCL_INC:%=-isystem %)
COMPAT_CC   = $(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(COMPAT_INC) $(LDFLAGS)
COMPAT_HDR := test/compat/calls.h examples/driver.h
COMPAT_BIN := $(addprefix $(COMPAT_DIR)/,libcompat.so way linked plugin.so torch_like.so torch_like_hidden.so \
  interposer.so other_dlsym.so lookups lookups_lib.so private/lookups_private.so)
# The program and the plugin find libcompat.so beside them, and libnccl.so.2 where the loader says.
COMPAT_LINK := -Wl,-rpath,'$$ORIGIN' -L$(COMPAT_DIR) -lcompat

$(COMPAT_DIR)/libcompat.so: test/compat/calls.c examples/driver.c $(COMPAT_HDR) | check-headers
	@mkdir -p $(@D)
	$(COMPAT_CC) -fPIC -shared -Wl,-soname,libcompat.so -o $@ test/compat/calls.c examples/driver.c -lpthread -ldl

$(COMPAT_DIR)/way: test/compat/way.c $(COMPAT_DIR)/libcompat.so
	$(COMPAT_CC) -fPIE -pie -o $@ $< $(COMPAT_LINK) -ldl

$(COMPAT_DIR)/linked: test/compat/linked.c $(COMPAT_DIR)/libcompat.so $(BUILD)/fake/libnccl.so.2
	$(COMPAT_CC) -fPIE -pie -o $@ $< $(COMPAT_LINK) $(BUILD)/fake/libnccl.so.2

$(COMPAT_DIR)/plugin.so: test/compat/plugin.c $(COMPAT_DIR)/libcompat.so $(BUILD)/fake/libnccl.so.2
	$(COMPAT_CC) -fPIC -shared -o $@ $< $(COMPAT_LINK) $(BUILD)/fake/libnccl.so.2 -ldl


# NCCL's own objects inside another library: exported as PyTorch's conda packages had them, and hidden.
$(COMPAT_DIR)/nccl_static.o: $(FAKE_NCCL_SRC) $(FAKE_NCCL_HDR) | check-headers
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(COMPAT_INC) -DFAKE_NCCL_VERSION=22809 -fPIC -fvisibility=hidden -nostdlib -r -o $@ $(FAKE_NCCL_SRC)

$(COMPAT_DIR)/torch_like%.so: test/compat/plugin.c test/compat/torch_like%.map $(COMPAT_DIR)/nccl_static.o $(COMPAT_DIR)/libcompat.so
	$(COMPAT_CC) -fPIC -shared -Wl,--version-script=test/compat/torch_like$*.map -o $@ $< $(COMPAT_DIR)/nccl_static.o \
	  $(COMPAT_LINK) -lpthread -lm -ldl
$(COMPAT_DIR)/torch_like.so: test/compat/plugin.c test/compat/torch_like.map $(COMPAT_DIR)/nccl_static.o $(COMPAT_DIR)/libcompat.so
	$(COMPAT_CC) -fPIC -shared -Wl,--version-script=test/compat/torch_like.map -o $@ $< $(COMPAT_DIR)/nccl_static.o \
	  $(COMPAT_LINK) -lpthread -lm -ldl

$(COMPAT_DIR)/interposer.so $(COMPAT_DIR)/other_dlsym.so: $(COMPAT_DIR)/%.so: test/compat/%.c
	@mkdir -p $(@D)
	$(COMPAT_CC) -fPIC -shared -o $@ $< -ldl

$(COMPAT_DIR)/private/lookups_private.so: test/compat/lookups.c
	@mkdir -p $(@D)
	$(COMPAT_CC) -fno-builtin -DPRIVATE -fPIC -shared -Wl,-soname,lookups_private.so -o $@ $< -ldl
$(COMPAT_DIR)/lookups_lib.so: test/compat/lookups.c $(COMPAT_DIR)/private/lookups_private.so
	$(COMPAT_CC) -DLIBRARY -fPIC -shared -Wl,--enable-new-dtags,-rpath,'$$ORIGIN/private' -Wl,--no-as-needed -o $@ $< \
	  $(COMPAT_DIR)/private/lookups_private.so -ldl
$(COMPAT_DIR)/lookups: test/compat/lookups.c
	@mkdir -p $(@D)
	$(COMPAT_CC) -fPIE -pie -o $@ $< -ldl

.PHONY: compat-clients
compat-clients: $(COMPAT_BIN)
all: compat-clients

test-compat:
	@CC='$(CC)' PYTHON='$(PYTHON)' sh test/deps.sh run
	+@env -u LD_PRELOAD BUILD='$(BUILD)' CC='$(CC)' MAKE='$(MAKE)' $(PYTHON) test/compat/table.py
