/* SPDX-License-Identifier: Apache-2.0 */
/* [profile] and [log]. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/grow.h"
#include "shim/base/names.h"
#include "shim/base/size.h"
#include "shim/profile/reader.h"
#include "shim/profile/version.h"

static const char *near_text(const char *word, const char *const *words, char *buf, size_t size)
{
    const char *near = nearest_name(word, words);

    if (near)
        snprintf(buf, size, "; did you mean '%s'?", near);
    else
        *buf = '\0';
    return buf;
}

/* Names that would change the process itself, or us, whatever a profile says. */
static bool never_ours(const char *name)
{
    return !strncmp(name, "LD_", 3) || !strcmp(name, "PATH") || !strncmp(name, "NCCLSHIM_", 9);
}

static bool is_variable_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";

    return *name && strchr(letters, *name) &&
           strspn(name + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") ==
               strlen(name + 1);
}

static int allow_one(struct reader *r, const char *name, int line)
{
    char **slot;

    if (!is_variable_name(name))
        return reader_error(r, line,
                            "allow_unknown: '%s' is no name of a variable; write NAME or "
                            "NAME, NAME",
                            name);
    if (never_ours(name))
        return reader_error(r, line, "allow_unknown: %s is never a profile's to set", name);
    slot = GROW(r->p->allow_unknown, r->p->allow_unknown_count);
    if (!slot || !(*slot = strdup(name)))
        return reader_no_memory(r);
    return 0;
}

static int allow_unknown(struct reader *r, char *text, int line)
{
    for (char *c = text, *comma; c; c = comma) {
        comma = strchr(c, ',');
        if (comma)
            *comma++ = '\0';
        c += strspn(c, " \t");
        c[strcspn(c, " \t")] = '\0';
        if (allow_one(r, c, line))
            return -1;
    }
    return 0;
}

static int set_inherit(struct reader *r, const char *text, int line)
{
    if (!*text || strchr(text, ',') || !strcmp(text, "none"))
        return reader_error(r, line, "inherit = %s: name one other profile", text);
    r->inherit = strdup(text);
    r->inherit_line = line;
    return r->inherit ? 0 : reader_no_memory(r);
}

static int set_nccl(struct reader *r, const char *text, int line)
{
    if (version_range_parse(text, &r->p->nccl))
        return reader_error(r, line, "nccl = %s: write >=2.21, or >=2.21, <2.29, or one version",
                            text);
    r->p->nccl.text = strdup(text);
    r->p->nccl_place = (struct place){r->file, line};
    return r->p->nccl.text ? 0 : reader_no_memory(r);
}

static int profile_value(struct reader *r, const char *key, struct clean_value *v, int line)
{
    static const char *const keys[] = {"description",  "inherit",       "nccl",
                                       "allow_unsafe", "allow_unknown", NULL};
    char near[80];

    if (!strcmp(key, "description")) {
        free(r->p->description);
        r->p->description = v->text;
        v->text = NULL;
        return 0;
    }
    if (!strcmp(key, "inherit"))
        return set_inherit(r, v->text, line);
    if (!strcmp(key, "nccl"))
        return set_nccl(r, v->text, line);
    if (!strcmp(key, "allow_unknown"))
        return allow_unknown(r, v->text, line);
    if (!strcmp(key, "allow_unsafe")) {
        if (value_bool(v->text, &r->p->allow_unsafe))
            return reader_error(r, line, "allow_unsafe = %s: write yes or no", v->text);
        return 0;
    }
    return reader_error(r, line, "[profile] has no key '%s'%s", key,
                        near_text(key, keys, near, sizeof(near)));
}

int section_profile_key(struct reader *r, const char *key, const char *raw, int line)
{
    struct clean_value v;
    int rc = reader_clean(r, key, raw, true, line, &v);

    if (rc)
        return rc > 0 ? 0 : rc;
    rc = profile_value(r, key, &v, line);
    free(v.text);
    return rc;
}

/* ---- [log] ----------------------------------------------------------------------------------- */

static int set_ops(struct reader *r, char *text, int line)
{
    uint32_t ops = 0;

    for (char *c = text, *comma; c; c = comma) {
        size_t word, blanks;
        int op;
        comma = strchr(c, ',');
        if (comma)
            *comma++ = '\0';
        c += strspn(c, " \t");
        word = strcspn(c, " \t");
        blanks = strspn(c + word, " \t");
        if (c[word + blanks])
            return reader_error(r, line, "ops: '%s' stands behind a blank; write commas between names",
                                c + word + blanks);
        c[word] = '\0';
        op = op_parse(c);
        if (op < 0)
            return reader_error(r, line,
                                "ops: no operation is called '%s'; write names like "
                                "all_reduce, all_gather",
                                c);
        ops |= 1u << op;
    }
    r->p->log.ops = ops;
    return 0;
}

static int set_log_size(struct reader *r, enum log_key which, const char *text, int line)
{
    struct log_options *log = &r->p->log;
    uint64_t n;

    if (size_parse(text, &n))
        return reader_error(r, line,
                            "'%s' is no number; write digits, with K, M or G for powers "
                            "of 1024",
                            text);
    if (which == LOG_KEY_MIN_BYTES) {
        log->min_bytes = n;
    } else if (which == LOG_KEY_SAMPLE) {
        if (n < 1 || n > 1000000)
            return reader_error(r, line, "sample = %s: stamp one call in N, N from 1 to 1000000",
                                text);
        log->sample = (uint32_t)n;
    } else {
        if (n < 1024 || n > 64u << 20 || n & (n - 1))
            return reader_error(r, line,
                                "capacity = %s: records in the ring, a power of two from "
                                "1K to 64M",
                                text);
        log->capacity = n;
    }
    return 0;
}

static int log_value(struct reader *r, enum log_key which, char *text, int line)
{
    struct log_options *log = &r->p->log;

    if (which == LOG_KEY_OPS)
        return set_ops(r, text, line);
    if (which != LOG_KEY_EAGER && which != LOG_KEY_CAPTURED)
        return set_log_size(r, which, text, line);
    if (value_bool(text, which == LOG_KEY_EAGER ? &log->eager : &log->captured))
        return reader_error(r, line, "'%s': write yes or no", text);
    return 0;
}

int section_log_key(struct reader *r, const char *key, const char *raw, int line)
{
    static const char *const keys[] = {"sample",   "capacity", "min_bytes", "eager",
                                       "captured", "ops",      NULL};
    struct clean_value v;
    char near[80];
    int which = 0, rc;

    while (keys[which] && strcmp(keys[which], key))
        which++;
    if (!keys[which])
        return reader_error(r, line, "[log] has no key '%s'%s", key,
                            near_text(key, keys, near, sizeof(near)));
    rc = reader_clean(r, key, raw, true, line, &v);
    if (rc)
        return rc > 0 ? 0 : rc;
    rc = log_value(r, (enum log_key)which, v.text, line);
    free(v.text);
    r->p->log.set |= 1u << which;
    r->p->log_places[which] = (struct place){r->file, line};
    return rc;
}
