/* SPDX-License-Identifier: Apache-2.0 */
/* An ab for people and for programs. */
#ifndef NCCLSHIM_CLI_AB_SHOW_H
#define NCCLSHIM_CLI_AB_SHOW_H

#include <jansson.h>

#include "shim/prove/ab/ab.h"
#include "shim/show/term.h"

void ab_text(const struct ab_result *r, const struct term *t);
/* docs/ab.md has the keys. NULL when memory is out. */
json_t *ab_json(const struct ab_result *r);

#endif
