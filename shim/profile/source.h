/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a profile before anything is made of them. inih reads leniently: it cuts long lines
 * and section names, glues indented lines to the value above, goes on behind a broken header, and
 * takes a file with CR line ends for empty. So all that is looked at here first, and a file that
 * passes means the same to a person and to inih.
 */
#ifndef NCCLSHIM_PROFILE_SOURCE_H
#define NCCLSHIM_PROFILE_SOURCE_H

#include <stddef.h>

#include "shim/base/error.h"

#define SOURCE_LINE_MAX 65536u /* bytes of a line without its end */
#define SOURCE_NAME_MAX 49u    /* letters of a section's or a key's name (inih keeps no more) */
#define SOURCE_FILE_MAX (16u * 1048576u) /* bytes of a file */

/*
 * Read a whole regular file into *bytes (malloc'ed, a zero byte behind its end). 0, or -1 with *e
 * filled.
 */
int source_read(const char *path, char **bytes, size_t *size, struct error *e);

/* Look at encoding, line lengths and the shape of each line. `bytes` ends with a zero byte. */
int source_check(const char *bytes, size_t size, const char *file, struct error *e);

#endif
