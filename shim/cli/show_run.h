/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLSHIM_CLI_SHOW_RUN_H
#define NCCLSHIM_CLI_SHOW_RUN_H

#include <stdbool.h>

/* `show --run`: what was asked and got in a run (NULL = the newest). Returns the exit code. */
int show_run(const char *name, bool json);

#endif
