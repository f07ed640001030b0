/* SPDX-License-Identifier: Apache-2.0 */
/* A file that the user names for what a verb has to say: -o, --html. */
#ifndef NCCLSHIM_CLI_OUTFILE_H
#define NCCLSHIM_CLI_OUTFILE_H

#include <stdio.h>

#include "shim/base/error.h"

/* Write `what` to out. 0, or -1 with *e filled, or with errno and *e left alone. */
typedef int outfile_writer(const void *what, FILE *out, struct error *e);

/*
 * The file appears whole or not at all, so that who reads it now and then never sees half of it.
 * What can't be replaced is written into: a device, a pipe, a terminal; of a link, what it leads to
 * is replaced. 0, or -1 with *e filled.
 */
int outfile_write(const char *path, outfile_writer *write, const void *what, struct error *e);

#endif
