# SPDX-License-Identifier: Apache-2.0
#
# make            the shared object, the command, the stand-ins for tests, the examples
# make run        the main job: an example server under the shim, then its report
# make test       every test that needs no GPU
# make test-gpu   the tests that need GPUs (skips by name what the machine lacks)
# make test-aarch64  the same tests built for AArch64, under an emulator (docs/install.md says what it needs)
# make test-package  the Debian package on a clean system
# make test-compat  every NCCL version by every way in (fetches NCCL once, about 2.5 GB)
# make soak       long runs on the simulator in which nothing may grow (some minutes)
# make fuzz       each fuzzer for half an hour (FUZZ_SECONDS)
# make bench      costs, each as a ratio to a baseline of the same run
# make install    into PREFIX (/usr/local), below DESTDIR; make uninstall takes it away
# make deb        a Debian package of what install would put into /usr
#
# Everything is built under build/. CC, CFLAGS, CUDA_HOME and NCCL_HOME are respected.

BUILD     ?= build
CC        ?= cc
AR        ?= ar
PYTHON    ?= /usr/bin/python3
PREFIX    ?= /usr/local
VERSION   := 0.1.0

include test/find.mk

WARN      := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla $(WERROR)
OPT       ?= -O2 -g
HARDEN    := -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2
CPPFLAGS  += -D_GNU_SOURCE -Iinclude -I. -DNCCLSHIM_VERSION='"$(VERSION)"'
STD       := -std=gnu11
ALL_CFLAGS = $(STD) $(OPT) $(WARN) $(HARDEN) $(CFLAGS)

# ---- rooms -------------------------------------------------------------------------------------
# The shared object: preload, plugin, profile, the log's writer, base; libc alone beside them.
SHIM_ROOMS := base profile log/write preload plugin
# The command: everything but preload and plugin.
CLI_ROOMS  := base profile log/read stats show prove/run prove/ab prove/bench prove/tune prove/doctor cli

room_src    = $(sort $(wildcard shim/$(1)/*.c))
SHIM_SRC   := $(foreach r,$(SHIM_ROOMS),$(call room_src,$(r)))
CLI_SRC    := $(foreach r,$(CLI_ROOMS),$(call room_src,$(r)))
SHIM_OBJ   := $(SHIM_SRC:%.c=$(BUILD)/pic/%.o)
CLI_OBJ    := $(CLI_SRC:%.c=$(BUILD)/obj/%.o)
CLI_LIB_OBJ:= $(filter-out $(BUILD)/obj/shim/cli/main.o,$(CLI_OBJ))

LIBSHIM    := $(BUILD)/libncclshim.so
CLI        := $(BUILD)/ncclshim

.PHONY: all run test test-gpu test-aarch64 test-compat soak fuzz bench clean install uninstall
.DEFAULT_GOAL := all

# ---- compile -----------------------------------------------------------------------------------
PIC_FLAGS := -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -include shim/base/glibc_floor.h \
  $(if $(findstring -fsanitize,$(OPT)),-DNCCLSHIM_SANITIZED)

$(BUILD)/pic/%.o: %.c Makefile | check-deps
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(PIC_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.o: %.c Makefile | check-deps
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -fPIE -MMD -MP -c -o $@ $<

$(LIBSHIM): $(SHIM_OBJ) shim/preload/ncclshim.map
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libncclshim.so -Wl,--gc-sections -Wl,-z,defs -Wl,-z,relro,-z,now \
	  -Wl,--version-script=shim/preload/ncclshim.map -o $@ $(SHIM_OBJ) -l:libinih.a -ldl

$(BUILD)/libcli.a: $(CLI_LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

CLI_LIBS := -l:libinih.a -ljansson -lncursesw -ltinfo -lzstd -lpthread -lm -ldl
$(CLI): $(BUILD)/obj/shim/cli/main.o $(BUILD)/libcli.a
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -pie -Wl,-z,relro,-z,now -o $@ $^ $(CLI_LIBS)

include test/fake/fake.mk
include examples/examples.mk
include test/e2e/clients/clients.mk
include test/gpu/cost/cost.mk
include test/gpu/tampered/tampered.mk
include test/test.mk
include test/package/package.mk

all: $(LIBSHIM) $(CLI) fake examples

# ---- install -----------------------------------------------------------------------------------
# The command finds the shared object by ../lib/ncclshim, and both find ../share/ncclshim/profiles: the
# tree can be moved as a whole. The example server and the simulator are for a first try; they are left out
# where cuda.h and nccl.h are missing, which nothing else needs.
INSTALL   ?= install
TO        := $(DESTDIR)$(PREFIX)
PRIVATE   := lib/ncclshim
PAGES     := share/doc/ncclshim
# FILE:PLACE
EXAMPLE   := $(and $(CUDA_H),$(NCCL_H),$(PRIVATE)/example)
PROGRAMS  := $(CLI):bin/ncclshim $(EXAMPLE:%=$(BUILD)/examples/decode_server:%/decode_server)
OBJECTS   := $(LIBSHIM):$(PRIVATE)/libncclshim.so \
  $(foreach l,libcuda.so.1 libnccl.so.2,$(EXAMPLE:%=$(BUILD)/fake/$(l):%/simulator/$(l)))
BUILT     := $(foreach f,$(PROGRAMS) $(OBJECTS),$(firstword $(subst :, ,$(f))))
FILES     := $(OBJECTS) include/ncclshim/log.h:include/ncclshim/log.h \
  docs/completion/ncclshim.bash:share/bash-completion/completions/ncclshim \
  docs/completion/_ncclshim:share/zsh/site-functions/_ncclshim \
  $(foreach f,$(wildcard profiles/*.ini),$(f):share/ncclshim/$(f)) \
  $(foreach f,$(wildcard docs/man/*.1),$(f):share/man/man1/$(notdir $(f))) \
  $(foreach f,README.md $(wildcard docs/*.md docs/use/*.md examples/deploy/*),$(f):$(PAGES)/$(f))
PC        := share/pkgconfig/ncclshim.pc

# $(1): the folder that becomes PREFIX; $(2): PREFIX, as files name it
define put
	@set -e; for f in $(PROGRAMS); do $(INSTALL) -D -m 755 $${f%%:*} $(1)/$${f#*:}; done
	@set -e; for f in $(FILES); do $(INSTALL) -D -m 644 $${f%%:*} $(1)/$${f#*:}; done
	@mkdir -p $(dir $(1)/$(PC))
	@sed 's|@PREFIX@|$(2)|; s|@VERSION@|$(VERSION)|' include/ncclshim/ncclshim.pc.in >$(1)/$(PC)
endef

install: $(BUILT)
	$(call put,$(TO),$(PREFIX))

uninstall:
	rm -f $(TO)/$(PC) $(foreach f,$(PROGRAMS) $(FILES),$(TO)/$(lastword $(subst :, ,$(f))))
	@find $(addprefix $(TO)/,$(PRIVATE) $(PAGES) share/ncclshim include/ncclshim) -depth -type d -empty -delete 2>/dev/null || true

DEB_DIR   ?= $(BUILD)
.PHONY: deb
deb: $(BUILT)
	@rm -rf $(DEB_DIR)/deb
	$(call put,$(DEB_DIR)/deb/root/usr,/usr)
	@sh packaging/deb.sh $(abspath $(DEB_DIR)) $(VERSION)

clean:
	rm -rf $(BUILD)

-include $(SHIM_OBJ:.o=.d) $(CLI_OBJ:.o=.d)
