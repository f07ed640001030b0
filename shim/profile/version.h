/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's versions as codes: 2.28.9 is 22809 (X * 10000 + Y * 100 + Z; up to 2.8, as NCCL itself has
 * it, X * 1000 + Y * 100 + Z). Codes compare in the order of the releases.
 */
#ifndef NCCLSHIM_PROFILE_VERSION_H
#define NCCLSHIM_PROFILE_VERSION_H

#include <stddef.h>

#include "shim/profile/profile.h"

#define VERSION_TEXT_MAX 24

/*
 * Code of "2.28.9", or of "2.28": then *last (may be NULL) is 2.28.99 and the result 2.28.0; for a
 * full version *last is the result. 0 when the text is no version.
 */
int version_parse(const char *text, int *last);

/* "2.28.9", or "2.28" for the end of a series (22899). Returns buf. */
const char *version_text(int code, char *buf, size_t size);

/*
 * `>=2.21`, `<2.28`, `>2.18, <=2.28.3`, `2.28` (all of 2.28): fills least and most, not text. A
 * version without its third number means all of its releases. 0 or -1; also -1 when no version is
 * in the range.
 */
int version_range_parse(const char *text, struct version_range *out);

#endif
