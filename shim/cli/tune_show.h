/* SPDX-License-Identifier: Apache-2.0 */
/* A tune for people and for programs. */
#ifndef NCCLSHIM_CLI_TUNE_SHOW_H
#define NCCLSHIM_CLI_TUNE_SHOW_H

#include <jansson.h>

#include "shim/prove/tune/tune.h"
#include "shim/show/term.h"

void tune_text(const struct tune *t, const struct term *term);
/* docs/tune.md has the keys. NULL when memory is out. */
json_t *tune_json(const struct tune *t);

#endif
