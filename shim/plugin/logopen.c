/* SPDX-License-Identifier: Apache-2.0 */
/* The one tie from the floor below: preload calls us when the log opens, without knowing us. */
#include "shim/plugin/asked.h"
#include "shim/plugin/plugin.h"
#include "shim/plugin/tuner.h"
#include "shim/preload/shim.h"

void plugin_log_opened(struct log_writer *log)
{
    tuner_rules_log_opened(log);
    asked_log_opened(log);
}

/* Before preload's own constructor, which has no priority. */
__attribute__((constructor(101))) static void tie(void)
{
    shim_on_log_open = plugin_log_opened;
}
