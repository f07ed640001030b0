/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a person wrote for an NCCL variable to the text that NCCL reads in the same sense, or a
 * refusal that says what NCCL would have read.
 */
#ifndef NCCLSHIM_PROFILE_ENV_VALUE_H
#define NCCLSHIM_PROFILE_ENV_VALUE_H

#include <stddef.h>

#include "shim/profile/nccl_vars.h"
#include "shim/profile/value.h"

/*
 * *out (malloc'ed) is the value for the environment: sizes in plain bytes, hexadecimal in decimal,
 * distances in capitals, no blanks in lists of choices; other text byte for byte. 0; or -1 with a
 * reason in `why`.
 */
int env_value_convert(const struct nccl_var *v, const struct clean_value *in, char **out, char *why,
                      size_t why_size);

/*
 * What NCCL would read of a text that is in the environment already: as env_value_convert, but a
 * text that NCCL reads in another sense than it is written is refused (a suffix K, blanks in a
 * list, a distance in small letters). 0 or -1 with a reason.
 */
int env_value_misread(const struct nccl_var *v, const char *text, char *why, size_t why_size);

#endif
