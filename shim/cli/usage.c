/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/verbs.h"

#include <stdio.h>

int fail(int code, const struct error *e)
{
    char buf[sizeof(e->file) + sizeof(e->text) + 32];

    fprintf(stderr, "ncclshim: %s\n", error_str(e, buf, sizeof(buf)));
    return code;
}

int usage(const char *text, int asked_for)
{
    fputs(text, asked_for ? stdout : stderr);
    return asked_for ? 0 : 2;
}
