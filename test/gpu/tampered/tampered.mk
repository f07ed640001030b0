# SPDX-License-Identifier: Apache-2.0
# A tampered NCCL for tests. Its NEEDED libnccl-real.so.2 is looked for beside it: the test puts a link there.
TAMPERED := $(BUILD)/tampered/libnccl.so.2

# Only its name counts when the other is linked.
$(BUILD)/obj/tampered/libnccl-real.so.2: test/gpu/tampered/tampered.mk
	@mkdir -p $(@D)
	$(CC) -shared -nostdlib -Wl,-soname,libnccl-real.so.2 -o $@ -x c /dev/null

$(TAMPERED): test/gpu/tampered/nccl.c shim/preload/nccl_api.h $(BUILD)/obj/tampered/libnccl-real.so.2
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -fPIC -fvisibility=hidden $(LDFLAGS) -shared \
	  -Wl,-soname,libnccl.so.2 -Wl,--no-as-needed -Wl,-rpath,'$$ORIGIN' -o $@ $< $(BUILD)/obj/tampered/libnccl-real.so.2 -ldl

.PHONY: tampered
tampered: $(TAMPERED)
all: tampered
