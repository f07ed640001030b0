/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a line in a file that a program still writes: "Application startup complete". */
#ifndef NCCLSHIM_PROVE_READY_H
#define NCCLSHIM_PROVE_READY_H

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>

#include "shim/base/error.h"

struct ready {
    regex_t re;
    FILE *in;
    char *line; /* what was read of the line so far */
    size_t used, room;
};

/* 0, or -1 with *e filled. The file need not be there yet. */
int ready_init(struct ready *r, const char *regex, struct error *e);
void ready_free(struct ready *r);
/* Begin anew with this file. */
void ready_watch(struct ready *r, const char *path);
/* Read on; is a line there that matches? One without its end counts too: prompts have none. */
bool ready_look(struct ready *r);

#endif
