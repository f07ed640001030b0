/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/ab/ready.h"

#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 65536u /* longer lines are looked at in pieces */

int ready_init(struct ready *r, const char *regex, struct error *e)
{
    char why[160];
    int rc;

    memset(r, 0, sizeof(*r));
    rc = regcomp(&r->re, regex, REG_EXTENDED | REG_NOSUB);
    if (rc == 0) {
        r->room = LINE_MAX_BYTES;
        r->line = malloc(r->room);
        if (r->line)
            return 0;
        regfree(&r->re);
        return error_set(e, NULL, 0, "out of memory");
    }
    regerror(rc, &r->re, why, sizeof(why));
    return error_set(e, NULL, 0, "--ready: '%s' is no extended regular expression: %s", regex, why);
}

void ready_free(struct ready *r)
{
    if (r->in)
        fclose(r->in);
    if (r->line)
        regfree(&r->re);
    free(r->line);
    memset(r, 0, sizeof(*r));
}

void ready_watch(struct ready *r, const char *path)
{
    if (r->in)
        fclose(r->in);
    r->in = fopen(path, "re");
    r->used = 0;
}

static bool matches(struct ready *r)
{
    r->line[r->used] = '\0';
    return regexec(&r->re, r->line, 0, NULL, 0) == 0;
}

bool ready_look(struct ready *r)
{
    int c;

    if (!r->in)
        return false;
    clearerr(r->in);
    while ((c = getc(r->in)) != EOF) {
        if (c == '\0')
            c = ' ';
        if (c != '\n' && c != '\r' && r->used + 1 < r->room) {
            r->line[r->used++] = (char)c;
            continue;
        }
        if (matches(r))
            return true;
        r->used = 0;
    }
    return r->used && matches(r);
}
