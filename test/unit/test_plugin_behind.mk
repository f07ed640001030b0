# SPDX-License-Identifier: Apache-2.0
# Plugins of a user's own, to be loaded behind ours: one source, with the tables that a name says:
# p = profiler, t = tuner, e = env, each followed by the newest version it has (0 = none).
BEHIND_PLUGINS := p6t6e2 p5t5e1 p4t4e0 p3t3e0 p0t2e0
BEHIND_SO      := $(BEHIND_PLUGINS:%=$(BUILD)/unit/behind/%.so)
behind_digit    = $(subst $(1),,$(firstword $(filter $(1)%,$(subst t, t,$(subst e, e,$(2))))))

$(BEHIND_SO): $(BUILD)/unit/behind/%.so: test/unit/plugin_behind.c shim/plugin/abi_profiler.h shim/plugin/abi_tuner.h shim/plugin/abi_env.h
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -DPROFILER=$(call behind_digit,p,$*) -DTUNER=$(call behind_digit,t,$*) \
	  -DENV=$(call behind_digit,e,$*) -fPIC -shared -o $@ $<

UNIT_OBJ_test_plugin_behind         := $(BEHIND_SO)
UNIT_OBJ_test_plugin_behind_tuner   := $(BEHIND_SO)
UNIT_FLAGS_test_plugin_behind       := -DBEHIND_DIR='"$(abspath $(BUILD))/unit/behind"'
UNIT_FLAGS_test_plugin_behind_tuner := $(UNIT_FLAGS_test_plugin_behind)
