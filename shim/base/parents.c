/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/base/parents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int parents_make(const char *path)
{
    char *copy = strdup(path);
    int rc = copy ? 0 : -1;

    for (char *p = copy; rc == 0 && *p && (p = strchr(p + 1, '/')); *p = '/') {
        *p = '\0';
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            rc = -1;
    }
    free(copy);
    return rc;
}
