/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/load.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/digest.h"
#include "shim/base/grow.h"
#include "shim/profile/check.h"
#include "shim/profile/reader.h"
#include "shim/profile/source.h"

/* One chain of inheritance being read. */
struct chain {
    char *paths[PROFILE_INHERIT_MAX + 1]; /* canonical, of the files read so far */
    int depth;
    uint64_t digest;
    struct error *e;
    profile_report *report;
    void *user;
};

static char *name_of(const char *path)
{
    const char *base = strrchr(path, '/');
    size_t n;

    base = base ? base + 1 : path;
    n = strlen(base);
    if (n > 4 && !strcmp(base + n - 4, ".ini"))
        n -= 4;
    return strndup(base, n);
}

static bool is_path(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') || (n > 4 && !strcmp(name + n - 4, ".ini"));
}

static int load_name(struct chain *c, const char *name, const char *from, int line,
                     struct profile **out);

static int inherit(struct chain *c, struct reader *r)
{
    struct profile *base = NULL;
    int rc;

    if (!r->inherit)
        return 0;
    if (c->depth > PROFILE_INHERIT_MAX) {
        reader_error(r, r->inherit_line, "inherit = %s: more than %d profiles one behind another",
                     r->inherit, PROFILE_INHERIT_MAX);
        return -1;
    }
    if (load_name(c, r->inherit, r->file, r->inherit_line, &base))
        return -1;
    rc = profile_merge(r->p, base);
    profile_free(base);
    return rc ? reader_no_memory(r) : 0;
}

static int load_bytes(struct chain *c, const char *bytes, size_t size, const char *path,
                      struct profile **out)
{
    struct reader r = {.e = c->e, .report = c->report, .user = c->user, .kind = SECTION_UNKNOWN};
    char **file;
    int rc = -1;

    r.p = profile_new();
    if (!r.p)
        return error_set(c->e, path, 0, "out of memory");
    c->digest = digest_bytes(c->digest, bytes, size);
    file = GROW(r.p->files, r.p->files_count);
    r.p->name = name_of(path);
    r.p->path = strdup(path);
    r.p->description = strdup("");
    if (file && (*file = strdup(path)) && r.p->name && r.p->path && r.p->description) {
        r.file = *file;
        condition_any(&r.when);
        rc = reader_run(&r, bytes, size) || inherit(c, &r) || section_comm_finish(&r) ? -1 : 0;
    } else {
        error_set(c->e, path, 0, "out of memory");
    }
    reader_free(&r);
    if (rc)
        profile_free(r.p);
    else
        *out = r.p;
    return rc;
}

/* An error outside of any reader: keep the first, tell the report. */
static int chain_error(struct chain *c, const struct error *e)
{
    if (c->e && !c->e->text[0])
        *c->e = *e;
    if (c->report)
        c->report(c->user, e);
    return -1;
}

/* A relative path in a file is meant from that file. */
static int locate(const char *name, const char *from, char *path, size_t size, struct error *e)
{
    const char *slash = from ? strrchr(from, '/') : NULL;
    int n;

    if (!is_path(name))
        return profile_find(name, path, size, e);
    if (slash && *name != '/')
        n = snprintf(path, size, "%.*s/%s", (int)(slash - from), from, name);
    else
        n = snprintf(path, size, "%s", name);
    return n < (int)size ? 0 : error_set(e, "", 0, "the path is too long");
}

static int load_name(struct chain *c, const char *name, const char *from, int line,
                     struct profile **out)
{
    char path[PATH_MAX], *bytes = NULL, *canonical;
    struct error e = {"", 0, ""};
    size_t size;
    int rc;

    if (locate(name, from, path, sizeof(path), &e) || source_read(path, &bytes, &size, &e)) {
        if (from) {
            struct error why = e;
            error_set(&e, from, line, "inherit = %s: %s%s%s", name, why.file,
                      why.file[0] ? " " : "", why.text);
        }
        return chain_error(c, &e);
    }
    canonical = realpath(path, NULL);
    for (int i = 0; canonical && i < c->depth; i++)
        if (c->paths[i] && !strcmp(c->paths[i], canonical)) {
            error_set(&e, from, line, "inherit = %s: %s inherits from itself this way", name, path);
            free(canonical);
            free(bytes);
            return chain_error(c, &e);
        }
    if (!canonical) {
        free(bytes);
        error_set(&e, path, 0, "its path can't be resolved");
        return chain_error(c, &e);
    }
    c->paths[c->depth++] = canonical;
    rc = load_bytes(c, bytes, size, path, out);
    free(bytes);
    return rc;
}

static void chain_free(struct chain *c)
{
    for (int i = 0; i < c->depth; i++)
        free(c->paths[i]);
}

static void chain_start(struct chain *c, struct error *e)
{
    memset(c, 0, sizeof(*c));
    c->digest = DIGEST_START;
    c->e = e;
    if (e)
        memset(e, 0, sizeof(*e));
}

static int none(struct profile **out, struct error *e)
{
    struct profile *p = profile_new();

    if (p) {
        p->name = strdup("none");
        p->path = strdup("");
        p->description = strdup("");
    }
    if (!p || !p->name || !p->path || !p->description) {
        profile_free(p);
        return error_set(e, "", 0, "out of memory");
    }
    p->digest = DIGEST_START;
    *out = p;
    return 0;
}

static bool is_none(const char *name)
{
    return !name || !*name || !strcmp(name, "none");
}

/* What is left to do with what a chain gave. */
static int finish(struct chain *c, int rc, struct profile **out, struct error *e)
{
    if (!rc)
        (*out)->digest = c->digest;
    if (!rc && !c->report && check_alone(*out, e)) {
        profile_free(*out);
        rc = -1;
    }
    chain_free(c);
    if (rc)
        *out = NULL;
    return rc;
}

int profile_load(const char *name_or_path, struct profile **out, struct error *e)
{
    struct chain c;

    *out = NULL;
    if (is_none(name_or_path))
        return none(out, e);
    chain_start(&c, e);
    return finish(&c, load_name(&c, name_or_path, NULL, 0, out), out, e);
}

int profile_parse(const char *bytes, size_t size, const char *file, struct profile **out,
                  struct error *e)
{
    struct chain c;

    chain_start(&c, e);
    c.paths[c.depth++] = strdup(file);
    return finish(&c, load_bytes(&c, bytes, size, file, out), out, e);
}

int profile_read(const char *name_or_path, struct profile **out,
                 void (*report)(void *user, const struct error *e), void *user)
{
    struct error e;
    struct chain c;

    *out = NULL;
    if (is_none(name_or_path))
        return none(out, &e);
    chain_start(&c, &e);
    c.report = report;
    c.user = user;
    return finish(&c, load_name(&c, name_or_path, NULL, 0, out), out, &e);
}
