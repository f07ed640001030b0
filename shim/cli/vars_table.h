/* SPDX-License-Identifier: Apache-2.0 */
/* The table of NCCL's variables as Markdown, for docs/profiles.md (a test keeps the two equal). */
#ifndef NCCLSHIM_CLI_VARS_TABLE_H
#define NCCLSHIM_CLI_VARS_TABLE_H

#include <stdio.h>

void vars_table_write(FILE *out);

#endif
